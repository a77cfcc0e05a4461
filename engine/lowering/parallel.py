"""Kernels whose outermost loop can be run in parts, by several threads.

The passes of that loop must not need each other: it carries nothing, and no pass touches what another one
writes. So the results do not depend on the number of parts, nor on the order in which they run.

Whether a call is run in parts is decided when it is made, by the number of elements (runtime/parallel.py).
"""

from __future__ import annotations

from functools import lru_cache

from msgspec.structs import replace

from cachegraph.named_tuples import NamedTuple
from engine.lowering.kernels.building import constant
from engine.lowering.loops import (
    Address,
    Array,
    Call,
    Compute,
    Evaluate,
    Integer,
    Kernel,
    Loop,
    Node,
    Place,
    ReadElement,
    WriteElement,
    walk,
)
from engine.lowering.steps import Step, region_of
from engine.lowering.table import Table
from engine.runtime.kernel_interface import MANY
from engine.runtime.numpy_functions import NUMPY_FUNCTIONS
from engine.scalar.embedded import Embedded

_BEGIN, _END, _PASS, _STEP = "begin_pass", "end_pass", "pass_number", "pass_step"


class InParts(NamedTuple):
    """A `kernel` whose last two arguments are the first pass to run and the one to stop before.

    Without these it was called with argument number `stop`, at which its loop ends; a pass is `step` long.
    """

    kernel: Kernel
    stop: int
    step: int


def split_kernels(table: Table) -> None:
    """Let the machine run calls in `table` in parts, where that is possible and there may be enough to do.

    Calls in the body of a loop never run in parts, but have the form of a kernel that does elsewhere: so it
    is compiled once.
    """
    split: dict[Kernel, InParts] = {}
    for step in table.steps:
        found = _divisible(table, step)
        if found is not None and step.kernel is not None:
            split[step.kernel] = found
            step.elements = table.product(step.lengths)
    for step in table.steps:
        form = split.get(step.kernel) if step.kernel is not None else None
        if form is not None:
            step.kernel = form.kernel
            passes = _quotient(table, step.arguments[form.stop], form.step)
            step.arguments = (*step.arguments, table.constant(0), passes)
            step.memory = (*step.memory, None, None)


def _quotient(table: Table, register: int, step: int) -> int:
    """Return the register of the number in `register` divided by `step`, rounded up."""
    if step == 1:
        return register
    return table.compute(
        "FLOORDIV", table.compute("ADDSAT", register, table.constant(step - 1)), table.constant(step)
    )


def _divisible(table: Table, step: Step) -> InParts | None:
    if step.kernel is None or region_of(step.stage) > 0 or not step.lengths:
        return None
    found = in_parts(step.kernel)
    number = None if found is None else table.number(table.product(step.lengths))
    return found if number is None or number >= MANY else None


@lru_cache(maxsize=1024)
def in_parts(kernel: Kernel) -> InParts | None:
    """Return the form of `kernel` that can be run in parts.

    Returns None if its outermost loop cannot be split: it is not the only one, carries values, or ends
    early; something is called; or passes may need each other, through memory that outlasts a pass.
    """
    *before, loop = kernel.body
    if not isinstance(loop, Loop) or not _is_plain(loop) or not all(map(_may_repeat, walk(before))):
        return None
    stop = Integer(str(loop.stop))
    if stop not in kernel.parameters or not _passes_are_independent(loop):
        return None
    split = replace(loop, start=_BEGIN, stop=_END) if loop.step == 1 else _by_number(loop)
    form = Kernel(
        (*kernel.parameters, Integer(_BEGIN), Integer(_END)),
        (*before, split),
        (*kernel.arguments, (_BEGIN,), (_END,)),
        f"{kernel.summary}, in parts",
    )
    return InParts(form, kernel.parameters.index(stop), loop.step)


def _by_number(loop: Loop) -> Loop:
    """Return the loop over the numbers of the passes of `loop`, whose step is more than 1."""
    index = (constant(_STEP, "int64", loop.step), Compute(loop.index, "mul", (_PASS, _STEP), "int64"))
    return replace(loop, index=_PASS, start=_BEGIN, stop=_END, step=1, body=(*index, *loop.body))


def _is_plain(loop: Loop) -> bool:
    return loop.start == 0 and not loop.carried and not loop.until


def _may_repeat(node: Node) -> bool:
    """Return True if each part can run `node` again: it neither changes memory nor keeps any."""
    return not isinstance(node, Loop | WriteElement | Array | Call) and not _leaves_kernel(node)


def _leaves_kernel(node: Node) -> bool:
    """Return True for a call of another function, except numpy's: it may use what other threads use."""
    if isinstance(node, Call):
        return node.external not in NUMPY_FUNCTIONS
    return isinstance(node, Evaluate) or (isinstance(node, Compute) and isinstance(node.op, Embedded))


def _passes_are_independent(loop: Loop) -> bool:
    nodes = list(walk(loop.body))
    if any(map(_leaves_kernel, nodes)):
        return False
    own = {node.name for node in nodes if isinstance(node, Array)}
    places: dict[str, set[Place]] = {}
    written: set[str] = set()
    for node in nodes:
        for place in _places(node):
            places.setdefault(place.pointer, set()).add(place)
            if not isinstance(node, ReadElement):
                written.add(place.pointer)
    written -= own
    indices = _indices_of_pass(loop, nodes)
    return all(_are_of_one_pass(places[pointer], indices) for pointer in written)


def _indices_of_pass(loop: Loop, nodes: list[Node]) -> set[str]:
    """Return the names of what is another number in each pass: the index, or those of loops along a tile."""
    if loop.step == 1:
        return {loop.index}
    bounds = loop.index, f"{loop.index}_end"
    return {node.index for node in nodes if isinstance(node, Loop) and (node.start, node.stop) == bounds}


def _places(node: Node) -> list[Place]:
    """Return what `node` reads or writes: of a call, where the elements begin, which are one or in a row."""
    if isinstance(node, ReadElement | WriteElement):
        return [node.place]
    arguments = node.arguments if isinstance(node, Call) else ()
    return [argument.place for argument in arguments if isinstance(argument, Address)]


def _are_of_one_pass(places: set[Place], indices: set[str]) -> bool:
    """Return True if no other pass touches an element at `places`, all of one array.

    They are one place that moves with one of `indices`, or lie in the row of that number.
    """
    steps = {next((term for term in place.terms if term[0] in indices), ()) for place in places}
    is_row = len(steps) == 1 and all(len(step) > 1 for step in steps)
    return () not in steps and (len(places) == 1 or is_row)
