"""`Program`: a lowered function, and its stored form.

The stored form (numbers little-endian):

    program  := "CGPR" format(1 byte) section{4}
    section  := length(8 bytes) bytes
    sections := description (JSON, UTF-8), code (int64 words), registers (int64 words, at the start of a
                call), constants (bytes; each constant starts at a multiple of 64)

Constants of more than 64 KiB are not in it, but blobs of the entry (cachegraph/pickling/large_arrays.py).

The description is an object with the fields of `Program` that are not bytes, by name, each a list.

Version history
    1  first
    2  scratch memory has a register that says how much is present; a yield for scratch makes no arrays
    3  callbacks and invocations
    4  results without their first rows
    5  large constants are blobs
    6  registers for the words of the eight integer dtypes
    7  and of complex numbers and float16
    8  the second kernel is the fast call
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cachegraph.errors import CachegraphError
from cachegraph.named_tuples import NamedTuple
from cachegraph.pickling.large_arrays import ReadBlob, blob_content, blob_name
from cachegraph.store.entry import NOTHING
from engine.runtime.registers import FIRST_FREE

if TYPE_CHECKING:
    from engine.graph.types import Type

MAGIC = b"CGPR"
FORMAT = 8
N_COMMON = 2
"""The number of kernels that all programs have in common, their first: the machine that runs them, and the
fast call. They have no register."""


class ProgramFormatError(CachegraphError):
    """A stored program cannot be read. `found` says what the bytes hold instead."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found

    def __str__(self) -> str:
        return f"reading a stored program: found {self.found}; treat the entry as damaged or foreign"


class ArrayInput(NamedTuple):
    """An array that the program takes: its dtype, and for each dim a length, or None for any."""

    dtype: str
    shape: tuple[int | None, ...]


class BoundArray(NamedTuple):
    """An array bound when the program is loaded; its address goes to `register`.

    It is data number `data`; or, if that is None, the constant in the blob with the digest `blob`
    (hex); or, if that is None too, the one at `offset` of the constants.
    """

    register: int
    dtype: str
    shape: tuple[int, ...]
    data: int | None
    offset: int
    blob: str | None


class KernelUse(NamedTuple):
    """A kernel that the program calls, by the digest and confirmation of its key (hex); its address
    goes to `register`, which is 0 for the first N_COMMON.
    """

    register: int
    digest: str
    confirmation: str


class Allocation(NamedTuple):
    """An array to allocate at a yield, with the lengths in the registers `dims`; result number `result`
    is all of it but the first `skipped` rows."""

    result: int
    dtype: str
    dims: tuple[int, ...]
    skipped: int


class Yield(NamedTuple):
    """A site where the program stops for memory: for `arrays`, or, if there are none, for scratch
    memory.

    For scratch memory, `need`, `base` and `present` are the registers of the bytes needed, the address,
    and the bytes present. For arrays all three are -1.
    """

    need: int
    base: int
    present: int
    arrays: tuple[Allocation, ...]


class CallbackUse(NamedTuple):
    """A callback by kind, version (callbacks.py) and options (canonical JSON), and the keys (digest and
    confirmation, hex) of the functions that it calls, which are entries of their own."""

    kind: str
    version: int
    options: str
    functions: tuple[tuple[str, str], ...]


class Operand(NamedTuple):
    """An input of a callback: the registers of its address, its lengths and, unless it is C-contiguous,
    its strides in elements."""

    dtype: str
    pointer: int
    dims: tuple[int, ...]
    strides: tuple[int, ...] | None


class Returned(NamedTuple):
    """An output of a callback: its dtype, and for each length the register that holds it, or None for
    any."""

    dtype: str
    dims: tuple[int | None, ...]


class Invocation(NamedTuple):
    """A site where the program stops for Python: callback number `callback` computes `outputs`, for
    `op`."""

    callback: int
    op: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Returned, ...]


class Site(NamedTuple):
    """A check in the code at `pc`: the kind of failure, the Op, and details for the message."""

    pc: int
    kind: str
    op: str
    about: tuple[str, ...]


class Program(NamedTuple):
    """A lowered function.

    `outputs` are the numbers of the results that are returned, `updates` pairs (input position, result)
    of those that replace values of inputs. `blobs` holds the large constants, by the names of the
    entry's blobs; a program as it is stored has none.
    """

    inputs: tuple[ArrayInput, ...]
    bound: tuple[BoundArray, ...]
    kernels: tuple[KernelUse, ...]
    callbacks: tuple[CallbackUse, ...]
    yields: tuple[Yield, ...]
    invocations: tuple[Invocation, ...]
    sites: tuple[Site, ...]
    outputs: tuple[int, ...]
    updates: tuple[tuple[int, int], ...]
    code: bytes
    registers: bytes
    constants: bytes
    blobs: Mapping[str, bytes] = NOTHING


_RECORDS: dict[str, Any] = {
    "inputs": lambda row: ArrayInput(row[0], tuple(row[1])),
    "bound": lambda row: BoundArray(row[0], row[1], tuple(row[2]), row[3], row[4], row[5]),
    "kernels": lambda row: KernelUse(*row),
    "callbacks": lambda row: CallbackUse(row[0], row[1], row[2], tuple((k, c) for k, c in row[3])),
    "yields": lambda row: Yield(
        row[0], row[1], row[2], tuple(Allocation(r, d, tuple(n), s) for r, d, n, s in row[3])
    ),
    "invocations": lambda row: Invocation(
        row[0],
        row[1],
        tuple(Operand(d, p, tuple(n), None if s is None else tuple(s)) for d, p, n, s in row[2]),
        tuple(Returned(d, tuple(n)) for d, n in row[3]),
    ),
    "sites": lambda row: Site(row[0], row[1], row[2], tuple(row[3])),
    "outputs": int,
    "updates": lambda row: (row[0], row[1]),
}


def pack_program(program: Program) -> bytes:
    """Return the stored form of `program`. Its blobs are stored beside it."""
    description = json.dumps({name: getattr(program, name) for name in _RECORDS}, separators=(",", ":"))
    sections = (description.encode(), program.code, program.registers, program.constants)
    framed = b"".join(struct.pack("<Q", len(section)) + section for section in sections)
    return MAGIC + bytes((FORMAT,)) + framed


def unpack_program(content: bytes) -> Program:
    """Return the program that `content` stores; raises ProgramFormatError for other bytes."""
    if content[:4] != MAGIC or len(content) < 5:
        raise ProgramFormatError("other bytes than a program starts with")
    if content[4] != FORMAT:
        raise ProgramFormatError(f"format {content[4]} where {FORMAT} is read")
    description, code, registers, constants = _sections(content)
    try:
        read = json.loads(description)
        fields: dict[str, Any] = {name: tuple(map(make, read[name])) for name, make in _RECORDS.items()}
        program = Program(**fields, code=code, registers=registers, constants=constants)
        _check_references(program, len(registers) // 8)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ProgramFormatError(f"a description that cannot be read ({error!r})") from error
    return program


def with_blobs(program: Program, read: ReadBlob) -> Program:
    """Return a stored program with its blobs, read by `read`; raises MissingBlob if one cannot be read."""
    digests = dict.fromkeys(row.blob for row in program.bound if row.blob is not None)
    if not digests:
        return program
    blobs = {blob_name(digest): blob_content(read, digest, "a stored program") for digest in digests}
    return program._replace(blobs=blobs)


def _check_references(program: Program, registers: int) -> None:
    """Refuse (ProgramFormatError) a program that refers to registers or results outside its own, or has
    no machine or no fast call."""
    allocated = [allocation for site in program.yields for allocation in site.arrays]
    common, called = program.kernels[:N_COMMON], program.kernels[N_COMMON:]
    if [use.register for use in common] != [0] * N_COMMON:
        raise ProgramFormatError("no machine to run it, or no fast call")
    named = [row.register for row in program.bound] + [use.register for use in called]
    named += [dim for allocation in allocated for dim in allocation.dims]
    named += [register for site in program.yields if not site.arrays for register in site[:3]]
    named += [register for site in program.invocations for register in _registers(site)]
    if not all(FIRST_FREE <= register < registers for register in named):
        raise ProgramFormatError(f"a register that is not among {FIRST_FREE} to {registers - 1}")
    if not all(0 <= site.callback < len(program.callbacks) for site in program.invocations):
        raise ProgramFormatError(f"a callback that is not among {len(program.callbacks)}")
    results = sorted(allocation.result for allocation in allocated)
    returned = (*program.outputs, *(result for _, result in program.updates))
    if results != list(range(len(results))) or not set(returned) <= set(results):
        raise ProgramFormatError("results that are returned and never made, or made twice")


def _registers(site: Invocation) -> list[int]:
    shown = [register for row in site.inputs for register in (row.pointer, *row.dims, *(row.strides or ()))]
    return shown + [register for row in site.outputs for register in row.dims if register is not None]


def array_input(type: Type) -> ArrayInput:
    """Return what a program takes for an input of `type`, a tensor type."""
    tensor: Any = type
    return ArrayInput(tensor.dtype, tuple(tensor.shape))


def check_interface(
    program: Program, inputs: Sequence[ArrayInput], n_outputs: int, updated: Sequence[int]
) -> None:
    """Refuse (ProgramFormatError) a program with other inputs, another number of outputs or updates of
    other inputs."""
    found = (program.inputs, len(program.outputs), tuple(position for position, _ in program.updates))
    if found != (tuple(inputs), n_outputs, tuple(updated)):
        raise ProgramFormatError("a function of other inputs, outputs or updates")


def _sections(content: bytes) -> list[bytes]:
    sections, offset = [], 5
    for _ in range(4):
        if offset + 8 > len(content):
            raise ProgramFormatError("the end where a section is due")
        (length,) = struct.unpack_from("<Q", content, offset)
        offset += 8
        sections.append(content[offset : offset + length])
        offset += length
    if offset != len(content):
        raise ProgramFormatError(f"{len(content)} bytes where the sections end at {offset}")
    return sections
