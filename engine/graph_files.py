"""`pydotprint`: drawings of graphs in files, by PyTensor's name. They are SVG and need no other program."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.graph.apply import Apply
from engine.graph.drawing.svg import to_svg
from engine.graph.fgraph import FunctionGraph
from engine.graph.traversal import inner_graph
from engine.graph.variables import Variable


def pydotprint(
    fct: Any,
    outfile: str | Path | None = None,
    format: str = "svg",
    *,
    max_label_size: int = 70,
    scan_graphs: bool = False,
    print_output_file: bool = True,
    return_image: bool = False,
) -> str | None:
    """Draw `fct`: a compiled function, a graph, a variable, a node, or a list of variables.

    Return the drawing with `return_image`; otherwise write it to `outfile` ("pytensor.pydotprint.svg" in the
    current directory without one), and print where it is with `print_output_file`. Longer labels than
    `max_label_size` are cut. With `scan_graphs` the graphs of loops, and all others within Ops, are drawn in
    files beside it, named after the Op and its position. Raises ValueError for another format than "svg",
    and TypeError for what is no graph.
    """
    if format != "svg":
        raise ValueError(f"Drawing a graph as {format!r}: it is drawn as 'svg'; other programs convert that")
    graph = _graph_of(fct)
    if return_image:
        return to_svg(graph, max_label_size)
    place = Path("pytensor.pydotprint.svg" if outfile is None else outfile)
    drawings = [(place, graph), *(_inner_graphs(graph, place) if scan_graphs else ())]
    for path, drawn in drawings:
        path.write_text(to_svg(drawn, max_label_size), encoding="utf-8")
    if print_output_file:
        sys.stdout.write(f"The output file is available at {place}\n")
    return None


def _graph_of(drawn: Any) -> Any:
    if hasattr(drawn, "maker"):
        return drawn.maker.fgraph
    if hasattr(drawn, "outputs") and hasattr(drawn, "toposort"):
        return drawn
    outputs = drawn.outputs if isinstance(drawn, Apply) else [drawn] if isinstance(drawn, Variable) else drawn
    if not isinstance(outputs, list | tuple) or not all(isinstance(each, Variable) for each in outputs):
        raise TypeError(
            f"Drawing {drawn!r}: it is no function, graph, node or variable, nor a list of variables"
        )
    return FunctionGraph(outputs=outputs)


def _inner_graphs(graph: Any, place: Path) -> Iterator[tuple[Path, Any]]:
    """Yield the graphs within the Ops of `graph`, and the files of their drawings beside `place`."""
    for position, node in enumerate(graph.toposort()):
        held = inner_graph(node.op)
        if held is not None:
            name = re.sub(r"\W+", "_", str(node.op)).strip("_")
            yield place.with_name(f"{place.stem}_{name[:40]}_{position}{place.suffix}"), held
