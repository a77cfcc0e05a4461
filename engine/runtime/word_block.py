"""Blocks of words that compiled code reads: fields, then what they point to.

    block := word{fields} content* place{sites} site*

A field is a word, or the number of the word at which its content, or the table of the sites, begins; so is
the place of a site.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np


def word_block(
    fields: Iterable[str],
    words: Mapping[str, int],
    contents: Mapping[str, Sequence[int]],
    sites: Sequence[Sequence[int]],
) -> np.ndarray[Any, Any]:
    """Return a block whose `fields`, in this order, are those of `words`, those of `contents` and "sites"."""
    names = list(fields)
    content: list[int] = []
    starts = {}
    for name, rows in contents.items():
        starts[name] = len(names) + len(content)
        content.extend(rows)
    starts["sites"] = len(names) + len(content)
    place = starts["sites"] + len(sites)
    for site in sites:
        content.append(place)
        place += len(site)
    for site in sites:
        content.extend(site)
    values = {**words, **starts}
    return np.array([*(values[name] for name in names), *content], dtype=np.int64)
