"""The fast call: what compiled code (codegen/fast_call/) needs to run a program when Python calls a function.

It is a builtin function whose `self` is a tuple: first a block of words that describe the function, then
the objects that the block has addresses of. A call takes a state from the function's pool, the arguments
and the values of shared variables, runs the machine, makes the arrays for which the machine stops, and
returns them. No Python runs, and the only new objects are the results. It leaves a call to Python

- from the start (`general`), unless there is an idle state and one argument per input, each an array as
  the machine takes it, or a number for an input of rank 0;
- from where the machine stopped (`resume`), if that is for anything else than results (scratch memory, a
  callback, a pause, a failure), and in the end if the state is not settled or the function returns a
  dictionary.

The block:

    block  := word{BLOCK} place*        a word is a pointer, a number, or the number of the word of a place
    parts  := items made results registers            numbers of words in a state (call_state.py)
    kinds  := (kind limit type){n_arguments}          NUMBER_KINDS, or zeros
    sites  := place{yields}, each of a site
    site   := count (result descriptor skipped rank register{rank}){count}
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from cachegraph.named_tuples import NamedTuple
from engine.runtime.call_state import CallState, Frame, Pool
from engine.runtime.instructions import MAX_RANK
from engine.runtime.machine import Machine
from engine.runtime.program import Program, Yield
from engine.runtime.python_api import api_table
from engine.runtime.word_block import word_block

BLOCK = {
    "api": "pointer",
    "pool": "pointer",
    "code": "pointer",
    "machine": "pointer",
    "general": "pointer",
    "resume": "pointer",
    "array": "number",
    "ticks": "number",
    "n_arguments": "number",
    "n_shared": "number",
    "n_results": "number",
    "n_outputs": "number",
    "n_updates": "number",
    "returns": "number",
    "parts": "place",
    "kinds": "place",
    "storages": "place",
    "sites": "place",
    "updated": "place",
    "new_values": "place",
    "outputs": "place",
}
"""The fields of a block, in order. `array` is the offset of a state's array in it. `ticks` is the time that
the last call took, and the only one that changes."""
RETURNS_ONE, RETURNS_LIST, RETURNS_DICT = 0, 1, 2
NUMBER_KINDS = {
    "float64": (1, 2**53, np.float64),
    "float32": (2, 2**24, np.float32),
    "int64": (3, 2**63 - 1, np.int64),
    "int32": (4, 2**31 - 1, np.int32),
}
"""The dtypes that numbers are written as: the kind, the largest int that it takes for sure, and the type of
numpy's scalars that it takes."""

_LONG = -1
"""As unsigned ticks, more than all others: nothing is known of how long a call takes."""


class Arrangement(NamedTuple):
    """The way from arguments to items, and from results to what is returned.

    The items are `n_arguments` arguments and the values in `storages`. `updated` are the storages that get
    the results `new_values`; the results `outputs` are returned.
    """

    n_arguments: int
    storages: Sequence[list[Any]]
    updated: Sequence[list[Any]]
    new_values: Sequence[int]
    outputs: Sequence[int]
    returns: int


class Callees(NamedTuple):
    """The functions of Python that a fast call leaves to: `general` takes what the call was given."""

    general: Callable[..., Any]
    resume: Callable[..., Any]


def make_fast_call(
    machine: Machine,
    program: Program,
    frame: Frame,
    pool: Pool,
    code: np.ndarray[Any, Any],
    arrangement: Arrangement,
    callees: Callees,
) -> Callable[..., Any] | None:
    """Return a builtin function that calls the linked `program`, or None where there can be none."""
    table = api_table()
    allocations = [row for site in program.yields for row in site.arrays]
    if table is None or any(len(row.dims) > MAX_RANK for row in allocations):
        return None
    dtypes = {row.dtype: np.dtype(row.dtype) for row in allocations}
    words = {
        "api": table.ctypes.data,
        "pool": id(pool),
        "code": code.ctypes.data,
        "machine": machine.address,
        "general": id(callees.general),
        "resume": id(callees.resume),
        "array": _offset_of_array(),
        "ticks": _LONG,
        "n_arguments": arrangement.n_arguments,
        "n_shared": len(arrangement.storages),
        "n_results": frame.n_results,
        "n_outputs": len(arrangement.outputs),
        "n_updates": len(arrangement.updated),
        "returns": arrangement.returns,
    }
    places = {
        "parts": [frame.items, frame.made, frame.results, frame.registers],
        "kinds": [word for dtype in frame.numbers for word in _kind(dtype)],
        "storages": [id(storage) for storage in arrangement.storages],
        "updated": [id(storage) for storage in arrangement.updated],
        "new_values": list(arrangement.new_values),
        "outputs": list(arrangement.outputs),
    }
    block = word_block(BLOCK, words, places, [_site(site, dtypes) for site in program.yields])
    kept = (
        block,
        table,
        machine,
        pool,
        code,
        *callees,
        *arrangement.storages,
        *arrangement.updated,
        *dtypes.values(),
    )
    return _new_builtin(ctypes.addressof(machine.method), kept)


def _kind(dtype: str | None) -> tuple[int, int, int]:
    if dtype is None:
        return 0, 0, 0
    kind, limit, own = NUMBER_KINDS[dtype]
    return kind, limit, id(own)


def _site(site: Yield, dtypes: dict[str, np.dtype[Any]]) -> list[int]:
    words = [len(site.arrays)]
    for row in site.arrays:
        words.extend((row.result, id(dtypes[row.dtype]), row.skipped, len(row.dims), *row.dims))
    return words


@cache
def _offset_of_array() -> int:
    """Return where a state has the address of its array."""
    state = CallState(Frame((), 0, 0), np.zeros(16, np.int64), 0)
    words = (ctypes.c_int64 * (CallState.__basicsize__ // 8)).from_address(id(state))
    return 8 * list(words).index(id(state.array))


_new_builtin: Callable[[int, object], Callable[..., Any]] = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.py_object
)(("PyCFunction_New", ctypes.pythonapi))
