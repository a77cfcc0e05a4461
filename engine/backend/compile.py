"""From an optimized graph to a linked program, and from a stored program to a linked one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from cachegraph.key import CacheKey
from engine.backend import linking
from engine.backend.execution import Convert, Execution
from engine.backend.linking import Entries, KernelTally
from engine.backend.load import process_loader
from engine.backend.machine import process_machine
from engine.backend.program import array_input, check_interface, pack_program, unpack_program
from engine.graph.variables import Constant, Variable

if TYPE_CHECKING:
    from cachegraph.cache import Cache


def compile_program(
    cache: Cache,
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    n_outputs: int,
    updated: Sequence[int],
    data: Sequence[Constant],
    embedded: Sequence[Constant],
    tally: KernelTally,
) -> tuple[bytes, float]:
    """Lower a graph and link its kernels into this process: the stored program, and the seconds lowering took.

    The first `n_outputs` of `outputs` are returned, the others replace the values of the inputs at the positions
    `updated`. `data` is bound when the program is loaded, `embedded` becomes a part of it. Ops that hold graphs are
    lowered as these graphs are: equal ones share their kernels. Raises LoweringError for an Op without a kernel, CacheMissError where compiling is not allowed.
    """
    from engine.backend.assemble import assemble
    from engine.backend.keys import kernel_key, machine_key
    from engine.backend.lower import Lowering
    from engine.backend.rules import RULES
    from engine.inner.from_graph import inlined

    begin = perf_counter()
    lowering = Lowering(RULES, inputs, inlined(outputs, inputs), data, embedded)
    results = lowering.run()
    kernels = dict.fromkeys(step.kernel for step in lowering.table.steps if step.kernel is not None)
    keys = {kernel: kernel_key(kernel.encoding()) for kernel in kernels}
    machine = machine_key()
    program = assemble(lowering, results, n_outputs, updated, machine, keys)
    seconds = perf_counter() - begin
    wanted = {machine: None, **{key: kernel for kernel, key in keys.items()}}
    linking.build(cache, process_loader(), wanted, tally)
    return pack_program(program), seconds


def called_kernels(payload: bytes) -> tuple[bytes, ...]:
    """The digests of the keys of the kernels that a stored program calls; raises ProgramFormatError."""
    return tuple(bytes.fromhex(use.digest) for use in unpack_program(payload).kernels)


def load_program(
    cache: Entries,
    payload: bytes,
    inputs: Sequence[Variable],
    n_outputs: int,
    updated: Sequence[int],
    data: Sequence[Any],
    convert: Convert,
    name: str,
    tally: KernelTally | None,
) -> Execution:
    """Link a stored program. With a `tally` its kernels come from the cache; without, they are linked already.

    Raises ProgramFormatError, also for the program of a function of other inputs, outputs or updates, LookupError for
    a kernel that the cache has not, and what the loader raises.
    """
    program = unpack_program(payload)
    check_interface(program, [array_input(variable) for variable in inputs], n_outputs, updated)
    loader = process_loader()
    keys = [_key(use.digest, use.confirmation) for use in program.kernels]
    if tally is None:
        addresses = [loader.address(linking.symbol_of(key)) for key in keys]
    else:
        addresses = linking.link(cache, loader, keys, tally)
    return Execution(program, process_machine(addresses[0]), addresses[1:], data, convert, name)


def linked_entries(execution: Execution) -> Iterator[tuple[CacheKey, bytes]]:
    """The key and the stored form of each kernel that a linked program calls."""
    loader = process_loader()
    for use in execution.program.kernels:
        key = _key(use.digest, use.confirmation)
        yield key, loader.content(linking.symbol_of(key))


def _key(digest: str, confirmation: str) -> CacheKey:
    """The key by which a program names a kernel: enough to find the entry and to confirm it."""
    return CacheKey("kernel", (), bytes.fromhex(digest), bytes.fromhex(confirmation))
