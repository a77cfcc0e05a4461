"""The graphs of a report: drawings of the functions that took longest to build.

Whoever stores graphs draws them: a function that an entry point of the group "cachegraph.drawings" names, as
in `function.engine = "engine.compiling.stored_drawing:drawing"`, with the level first. It gets the key, the
digests of the blobs by name, and a function that reads a blob. It returns HTML without scripts, or None for
an entry that is not its own, and raises anything for one that it cannot draw.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from cachegraph.key import CacheKey
from cachegraph.logger import logger
from cachegraph.report.timeline import SHOWN_DIGITS
from cachegraph.store.entry import Entry, Miss
from cachegraph.store.maintenance.directory import CacheDirectory
from cachegraph.store.maintenance.whole_entries import stored_key
from cachegraph.units import format_seconds
from cachegraph.visible_text import one_line

ENTRY_POINTS = "cachegraph.drawings"
MOST_DRAWN = 8
_MOST_TRIED = 40
_LARGEST = 4 * 2**20  # characters of all drawings
_LEVEL = "function"
_LONGEST_TEXT = 200

Painter = Callable[[CacheKey, Mapping[str, str], Callable[[str], bytes | None]], str | None]


def drawn_functions(cache: CacheDirectory) -> str:
    """Return the graphs of the costliest functions as HTML, folded but for the first.

    A function that cannot be drawn has the reason in its place. Raises sqlite3.Error and OSError.
    """
    found: list[str] = []
    for entry in cache.listed("build", _MOST_TRIED, levels=_LEVEL):
        drawing = _drawing(cache, entry)
        if drawing is None:
            continue
        if sum(map(len, found)) + len(drawing) > _LARGEST:
            drawing = _note("The drawings above fill the page.")
        found.append(_folded(entry, drawing, not found))
        if len(found) == MOST_DRAWN:
            break
    return "\n".join(found) or _note("No function in this cache has a graph that can be drawn.")


def _folded(entry: Entry, drawing: str, is_open: bool) -> str:
    told = f"{entry.summary[:_LONGEST_TEXT]}, built in {format_seconds(entry.build_seconds)}"
    summary = f'<span class="code">{entry.hex[:SHOWN_DIGITS]}</span> {_text(told)}'
    opened = " open" if is_open else ""
    return f'<details class="graph"{opened}><summary>{summary}</summary>{drawing}</details>'


def _drawing(cache: CacheDirectory, entry: Entry) -> str | None:
    """Return the drawing of an entry, or why there is none; None if nobody draws it."""
    try:
        return next((drawn for painter in _painters() if (drawn := _painted(cache, entry, painter))), None)
    except Exception as error:  # the entry is somebody's, and so is what draws it
        return _note(f"It cannot be drawn: {str(error)[:_LONGEST_TEXT] or type(error).__name__}")


def _painted(cache: CacheDirectory, entry: Entry, painter: Painter) -> str | None:
    file = cache.described(entry.digest)
    if isinstance(file, Miss):
        raise ValueError(f"{file.reason}: {file.detail}")

    def read(digest: str) -> bytes | None:
        contents = (store.read_blob(digest) for store in cache.stores)
        return next((content for content in contents if content is not None), None)

    return painter(stored_key(file), {blob.name: blob.digest for blob in file.blobs}, read)


def _note(text: str) -> str:
    return f'<p class="note">{_text(text)}</p>'


def _text(text: str) -> str:
    return html.escape(one_line(text))


@lru_cache(maxsize=1)
def _painters() -> tuple[Painter, ...]:
    return tuple(_load_painters())


def _load_painters() -> Iterator[Painter]:
    from importlib.metadata import entry_points

    for found in entry_points(group=ENTRY_POINTS):
        if found.name.startswith(f"{_LEVEL}."):
            try:
                yield found.load()
            except Exception as error:  # the package is broken, or half installed
                logger("cachegraph").warning("loading the drawing %s failed: %r", found.value, error)
