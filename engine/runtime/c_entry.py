"""The C entry: what compiled code (codegen/c_entry/) needs to run a program when C calls it.

    int64 density(uint64 dim, double *point, double *gradient, double *density, void *user_data)
    int64 expand(uint64 dim, uint64 expanded, double *point, double *values, void *user_data)

No Python runs, no lock is needed, and any number of threads may call at once. The user data begin with two
addresses: that of the context of the function for `density`, and of the one for `expand`. Behind them
lie the addresses and lengths of shared arrays, wherever the contexts say.

A call takes a state: registers, arrays as the machine reads them, and the memory of scratch and results.
A context has SLOTS of them, made when they are first used and kept for later calls; further calls at the
same time make a state of their own. States are freed with the `CEntry`.

    context := word{CONTEXT} place*     a word is a pointer, a number, or the number of the word of a place
    inputs  := (array data lengths){n_inputs}       an array of the state; offsets in the user data, or -1.
               Those that are the same in each call are in the state from the start, and not here
    outputs := (array skipped)*                     elements to skip
    sites   := place{yields}, each of a site
    site    := 0 need base present memory | count items made{count}
    made    := array memory item_size rank register{rank}
    slots   := (is_taken state pad{6}){SLOTS}
    state   := (address bytes){n_memories} part*    a part is a table of addresses, an array or registers
    array   := the words of numpy's struct, then a length per dim

Version history
    1  first
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any, NoReturn
from weakref import finalize

import numpy as np

from cachegraph.named_tuples import NamedTuple
from engine.runtime.errors import EntryRefused
from engine.runtime.execution import Execution
from engine.runtime.externals import c_function
from engine.runtime.instructions import MAX_RANK, MOST
from engine.runtime.kernel_interface import ITEM_SIZES
from engine.runtime.load import LinkedKernel
from engine.runtime.program import ArrayInput, Program, Yield
from engine.runtime.python_api import OBJECT_HEAD
from engine.runtime.registers import ADDRESS_OF_DETAILS, DETAILS, FEWEST_FOR_PARTS
from engine.runtime.word_block import word_block

C_ENTRY_VERSION = 1
DENSITY, EXPAND, DISPOSE = 0, 1, 2
"""The functions that the code has, by the number that it takes."""

REFUSED, DENSITY_FAILED, GRADIENT_NOT_FINITE, DENSITY_NOT_FINITE = -1, 1, 3, 4
"""The codes of `density`: a point of another length, a program that fails, results that are not finite. A
sampler goes on elsewhere after a positive one."""
EXPANSION_FAILED = -2
"""The code of `expand` for a program that fails."""

CONTEXT = {
    "run": "pointer",
    "code": "pointer",
    "template": "pointer",
    "allocate": "pointer",
    "free": "pointer",
    "dim": "number",
    "expanded": "number",
    "held": "number",
    "n_words": "number",
    "n_relocations": "number",
    "n_memories": "number",
    "n_inputs": "number",
    "items": "number",
    "registers": "number",
    "relocations": "place",
    "inputs": "place",
    "outputs": "place",
    "sites": "place",
    "slots": "place",
}
"""The fields of a context, in order. `held` is the array that says if all requirements hold, or -1."""
SLOTS, SLOT_WORDS = 64, 8

DATA, RANK, LENGTHS, _DTYPE, _FLAGS = (OBJECT_HEAD + offset for offset in (0, 8, 16, 40, 48))
_TYPE = OBJECT_HEAD - 8
ARRAY_WORDS = (_FLAGS + 8) // 8
_CONTIGUOUS_AND_ALIGNED = 0x101


class SharedInput(NamedTuple):
    """Where the user data have the address and the lengths of an input: offsets in bytes."""

    data: int
    lengths: int


class EntryInterface(NamedTuple):
    """A density or an expansion that a program computes.

    `inputs` are those of the program: None for the point, an array for what is the same in each call.
    `outputs` are the positions of the outputs that C gets: the density and its gradient, or the values;
    `held` is that of a bool that says if they count.
    """

    which: int
    dim: int
    expanded: int
    inputs: Sequence[SharedInput | np.ndarray[Any, Any] | None]
    outputs: Sequence[int]
    held: int | None


class CEntry:
    """A function that C calls: its `address`, and the address of its `context`, which the user data must
    have."""

    def __init__(self, code: LinkedKernel, execution: Execution, interface: EntryInterface) -> None:
        shown = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address)
        self.address: int = shown(interface.which)
        made = _ContextMaker(execution, interface)
        words = made.context()
        self.context: int = words.ctypes.data
        dispose = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(shown(DISPOSE))
        # At the end of the process other threads may still be at work.
        finalize(self, _free_states, dispose, words, (code, made)).atexit = False

    def __reduce__(self) -> NoReturn:
        raise TypeError("Copying a C entry: its addresses count in this process alone; make another one")


def _free_states(dispose: Any, context: np.ndarray[Any, Any], keep: object) -> None:
    dispose(context.ctypes.data)


class _ContextMaker:
    """The words of a context, and the template of its states. Raises EntryRefused for what C cannot run."""

    def __init__(self, execution: Execution, interface: EntryInterface) -> None:
        self._interface = interface
        self._linked = linked = execution.linked()
        self._program = program = linked.program
        _check(program, interface)
        self._state: list[int] = [0] * (2 * len(_memories(program)))
        self._relocations: list[int] = []
        self._arrays: dict[int, tuple[int, int, int]] = {}
        """The array of each result, its rank and the rows to skip."""
        self._keep: list[Any] = [linked]
        self._inputs: list[int] = []
        self._items = self._table(
            [self._input(*pair) for pair in zip(program.inputs, interface.inputs, strict=True)]
        )
        self._sites = self._made_at(program.yields)
        self._registers = self._add_registers(linked.registers)
        self._template = np.array(self._state, dtype=np.int64)

    def context(self) -> np.ndarray[Any, Any]:
        interface, program = self._interface, self._program
        held = -1 if interface.held is None else self._output(interface.held)[0]
        words = {
            "run": self._linked.machine,
            "code": self._linked.code.ctypes.data,
            "template": self._template.ctypes.data,
            "allocate": c_function("malloc"),
            "free": c_function("free"),
            "dim": interface.dim,
            "expanded": interface.expanded,
            "held": held,
            "n_words": len(self._template),
            "n_relocations": len(self._relocations),
            "n_memories": len(_memories(program)),
            "n_inputs": len(self._inputs) // 3,
            "items": self._items,
            "registers": self._registers,
        }
        places = {
            "relocations": self._relocations,
            "inputs": self._inputs,
            "outputs": [word for number in interface.outputs for word in self._output(number)],
            "slots": [0] * (SLOTS * SLOT_WORDS),
        }
        return word_block(CONTEXT, words, places, self._sites)

    def _input(self, row: ArrayInput, source: SharedInput | np.ndarray[Any, Any] | None) -> int:
        """Add the array of an input; return its number. Calls set it, unless it is the same in each."""
        if isinstance(source, np.ndarray):
            plain = np.ascontiguousarray(source, dtype=row.dtype).reshape(source.shape)
            self._keep.append(plain)
            array = self._array(row.dtype, plain.shape)
            self._state[array + DATA // 8] = plain.ctypes.data
            return array
        array = self._array(row.dtype, [self._interface.dim] if source is None else [0] * len(row.shape))
        self._inputs += (array, *(source or (-1, -1)))
        return array

    def _array(self, dtype: str, lengths: Sequence[int]) -> int:
        """Add an array as the machine reads it; return its number in the state."""
        array = len(self._state)
        known = np.dtype(dtype)
        self._keep.append(known)
        fields = {
            _TYPE: id(np.ndarray),
            RANK: len(lengths),
            _DTYPE: id(known),
            _FLAGS: _CONTIGUOUS_AND_ALIGNED,
        }
        fields[LENGTHS] = array + ARRAY_WORDS
        words = [fields.get(8 * word, 0) for word in range(ARRAY_WORDS)]
        self._state.extend((*words, *lengths))
        self._relocations.append(array + LENGTHS // 8)
        return array

    def _table(self, arrays: Sequence[int]) -> int:
        """Add a table of the addresses of arrays."""
        table = len(self._state)
        self._relocations.extend(range(table, table + len(arrays)))
        self._state.extend(arrays)
        return table

    def _made_at(self, yields: Sequence[Yield]) -> list[list[int]]:
        """Return the records of the sites, and add the arrays that are made there."""
        records, memory = [], 0
        for site in yields:
            if not site.arrays:
                records.append([0, site.need, site.base, site.present, memory])
                memory += 1
                continue
            arrays = [self._array(row.dtype, [0] * len(row.dims)) for row in site.arrays]
            record = [len(arrays), self._table(arrays)]
            for array, row in zip(arrays, site.arrays, strict=True):
                self._arrays[row.result] = array, len(row.dims), row.skipped
                record += [array, memory, ITEM_SIZES[row.dtype], len(row.dims), *row.dims]
                memory += 1
            records.append(record)
        return records

    def _add_registers(self, registers: np.ndarray[Any, Any]) -> int:
        begin = len(self._state)
        self._state.extend(registers.tolist())
        self._state[begin + FEWEST_FOR_PARTS] = MOST  # C calls from as many threads as it wants
        self._state[begin + ADDRESS_OF_DETAILS] = begin + DETAILS
        self._relocations.append(begin + ADDRESS_OF_DETAILS)
        return begin

    def _output(self, number: int) -> tuple[int, int]:
        """Return the array of an output, and how many elements of it to skip."""
        array, _, skipped = self._arrays[self._program.outputs[number]]
        return array, skipped


def _memories(program: Program) -> list[int]:
    """Return the site of each memory that a state has: one for scratch memory, one an array."""
    return [number for number, site in enumerate(program.yields) for _ in site.arrays or (None,)]


def _check(program: Program, interface: EntryInterface) -> None:
    """Refuse (EntryRefused) a program that needs Python, or gives other things than C takes."""
    if sys.implementation.name != "cpython":
        raise _refused("the machine", f"it reads no arrays of {sys.implementation.name}")
    for site in program.invocations:
        raise _refused(site.op, "it is computed in Python")
    if program.updates:
        raise _refused("a shared variable", "the function updates it")
    made = {row.result: row for site in program.yields for row in site.arrays}
    if any(len(row.dims) > MAX_RANK for row in made.values()):
        raise _refused("an array", f"it has more than {MAX_RANK} dims")
    for number in interface.outputs:
        row = made[program.outputs[number]]
        if row.dtype != "float64":
            raise _refused(f"output {number}", f"it is of {row.dtype}, C takes float64")
        if row.skipped and len(row.dims) != 1:
            raise _refused(f"output {number}", "it is behind other rows of a matrix")


def _refused(subject: str, found: str) -> EntryRefused:
    return EntryRefused("making a C entry for", subject, found)
