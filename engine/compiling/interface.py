"""`Interface`: the arguments and results of a function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegraph.named_tuples import NamedTuple
from engine.runtime.execution import Convert

if TYPE_CHECKING:
    from engine.graph.types import Type


class Interface(NamedTuple):
    """The arguments and results of a function.

    `types` are those of its inputs, shared variables included. The first `n_outputs` results are
    returned; the others replace the values of the inputs at the positions `updated`. `convert` converts
    arguments.
    """

    types: tuple[Type, ...]
    n_outputs: int
    updated: tuple[int, ...]
    convert: Convert
