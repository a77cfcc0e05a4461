"""Graphs as SVG, and as HTML with a drawing for each inner graph; neither has a script or needs a program.

Hovering shows an Op with the types that it reads and gives. In HTML, inner graphs are folded below the graph
that applies them: a click unfolds one, also on a node of it, whose link leads there. Colours are those of the
text around, so that a drawing fits light and dark pages. All texts are escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from cachegraph.named_tuples import NamedTuple
from engine.graph.drawing.layered import Placed, place
from engine.graph.drawing.picture import MAX_LABEL, Box, Picture, picture_of
from engine.graph.traversal import inner_graph

MAX_INNER = 40
"""Inner graphs of one HTML drawing, those nearest to the outer graph."""

_HEIGHT = 26.0
_CHARACTER = 7.3  # of the monospaced font at 12 pixels
_MARGIN = 8.0
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_STYLE = """
.engine-graph{font:12px ui-monospace,Menlo,Consolas,monospace;color:inherit}
.engine-graph .fit{overflow:auto;max-height:80vh}
.engine-graph svg text{fill:currentColor;text-anchor:middle;dominant-baseline:central}
.engine-graph rect{stroke:currentColor;stroke-opacity:.55;fill:currentColor;fill-opacity:.05}
.engine-graph .input rect{fill:#0f9488;fill-opacity:.25}
.engine-graph .output rect{fill:#d9822b;fill-opacity:.25}
.engine-graph .constant rect,.engine-graph .omitted rect{stroke-opacity:.2;stroke-dasharray:3 2}
.engine-graph .held rect{stroke-width:2;fill:#6b7fd7;fill-opacity:.22}
.engine-graph path{fill:none;stroke:currentColor;stroke-opacity:.4}
.engine-graph g:hover>rect{stroke-opacity:1;stroke-width:2}
.engine-graph path:hover{stroke:#d9822b;stroke-opacity:1;stroke-width:2.5}
.engine-graph details{margin:.3em 0 .3em 1em}
.engine-graph summary{cursor:pointer}
.engine-graph :target{outline:2px solid #6b7fd7}
"""


def to_svg(graph: Any, max_label: int = MAX_LABEL) -> str:
    """Return `graph` (mutable, frozen, or a compiled function's) drawn as SVG, without its inner graphs.

    Longer labels than `max_label` are cut; the whole text is shown when hovered over.
    """
    return _svg(picture_of(_graph_of(graph), max_label), {}, f"<style>{_escaped(_STYLE)}</style>")


def to_html(graph: Any) -> str:
    """Return `graph` drawn as HTML, with its inner graphs folded below it."""
    page = _Page()
    body = "".join(page.drawing(_graph_of(graph)))
    return f'<div class="engine-graph"><style>{_STYLE}</style>{body}</div>'


def _graph_of(graph: Any) -> Any:
    return graph.maker.fgraph if hasattr(graph, "maker") else graph


class _Page:
    """The writer of one HTML drawing. An inner graph is drawn once, where it is first applied."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._mark = ""

    def drawing(self, graph: Any) -> Iterator[str]:
        """Yield the HTML of `graph`, and of the inner graphs that it is the first to apply."""
        picture = picture_of(graph)
        if not self._mark:  # a notebook has many drawings: ids are told apart by what is drawn
            content = repr(picture.boxes).encode("utf-8", "replace")
            self._mark = f"g{blake2b(content, digest_size=6).hexdigest()}"
        applied = {box.held: box.label for box in picture.boxes if box.held is not None}
        new = [op for op in applied if op not in self._numbers][: MAX_INNER - len(self._numbers)]
        first = len(self._numbers) + 1
        self._numbers.update((op, number) for number, op in enumerate(new, first))
        links = {op: _Link(number, f"{self._mark}-{number}") for op, number in self._numbers.items()}
        yield f'<div class="fit">{_svg(picture, links, "")}</div>'
        yield _told(picture, len(applied.keys() - links.keys()))
        for op in new:
            yield f"<details><summary>inner graph {links[op].number}: {_escaped(applied[op])}</summary>"
            yield f'<div id="{links[op].anchor}">'
            yield from self.drawing(inner_graph(op))
            yield "</div></details>"


class _Link(NamedTuple):
    """The number of an inner graph in a drawing, and the id of the element that holds it."""

    number: int
    anchor: str


def _told(picture: Picture, folded_away: int) -> str:
    told = []
    if picture.left_out:
        told.append(
            f"{picture.left_out} of {picture.nodes} nodes are left out: those farthest from the outputs."
        )
    if folded_away:
        told.append(f"{folded_away} inner graphs are left out.")
    return f"<p>{' '.join(told)}</p>" if told else ""


def _svg(picture: Picture, links: Mapping[Any, _Link], style: str) -> str:
    labels = [_label(box, links) for box in picture.boxes]
    widths = [max(len(label) * _CHARACTER + 16.0, 30.0) for label in labels]
    placed = place(widths, _HEIGHT, ((arrow.tail, arrow.head) for arrow in picture.arrows))
    width, height = placed.width + 2 * _MARGIN, placed.height + 2 * _MARGIN
    parts = [*_arrows(picture, placed), *_boxes(picture.boxes, labels, widths, placed, links)]
    left_out = (
        f"<desc>{picture.left_out} of {picture.nodes} nodes are left out</desc>" if picture.left_out else ""
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="engine-graph" font-family="monospace" '
        f'font-size="12" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{-_MARGIN:g} {-_MARGIN:g} {width:.1f} {height:.1f}">'
        f"{style}{left_out}{''.join(parts)}</svg>"
    )


def _arrows(picture: Picture, placed: Placed) -> Iterator[str]:
    """Yield the lines of edges; several from one box share a line until they part, which is drawn once."""
    titles: dict[tuple[int, int], list[str]] = {}
    for arrow in picture.arrows:
        titles.setdefault((arrow.tail, arrow.head), []).append(arrow.title)
    drawn: set[tuple[int, tuple[float, float]]] = set()
    for (tail, head), told in titles.items():
        points = placed.bends[tail, head]
        shared = 0
        while shared < len(points) - 2 and (tail, points[shared + 1]) in drawn:
            shared += 1
        drawn.update((tail, point) for point in points[:-1])
        yield f'<path d="{_curve(points[shared:])}"><title>{_escaped(chr(10).join(told))}</title></path>'


def _curve(points: Sequence[tuple[float, float]]) -> str:
    """Return a path from below the first of `points` to above the last; it passes layers upright."""
    half = _HEIGHT / 2
    (x, y), *others = points
    y += half
    text = f"M{x:.1f} {y:.1f}"
    for number, (right, below) in enumerate(others):
        top = below - half
        middle = (y + top) / 2
        text += f"C{x:.1f} {middle:.1f} {right:.1f} {middle:.1f} {right:.1f} {top:.1f}"
        if number < len(others) - 1:
            text += f"V{below + half:.1f}"
        x, y = right, below + half
    return text


def _label(box: Box, links: Mapping[Any, _Link]) -> str:
    return (
        f"{box.label} [{links[box.held].number}]" if box.held is not None and box.held in links else box.label
    )


def _boxes(
    boxes: Sequence[Box],
    labels: Sequence[str],
    widths: Sequence[float],
    placed: Placed,
    links: Mapping[Any, _Link],
) -> Iterator[str]:
    for box, label, width, (x, y) in zip(boxes, labels, widths, placed.centers, strict=True):
        corner = 4.0 if box.kind == "node" else _HEIGHT / 2
        link = links.get(box.held) if box.held is not None else None
        kind = box.kind if box.held is None else f"{box.kind} held"
        drawn = (
            f'<g class="{kind}"><title>{_escaped(box.title)}</title>'
            f'<rect x="{x - width / 2:.1f}" y="{y - _HEIGHT / 2:.1f}" width="{width:.1f}" '
            f'height="{_HEIGHT:g}" rx="{corner:g}"/>'
            f'<text x="{x:.1f}" y="{y:.1f}">{_escaped(label)}</text></g>'
        )
        yield drawn if link is None else f'<a href="#{link.anchor}">{drawn}</a>'


def _escaped(text: str) -> str:
    """Return `text` for XML, which has no place for most control characters and lone surrogates."""
    return html.escape(_CONTROL.sub("\ufffd", text))
