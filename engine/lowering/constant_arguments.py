"""Constants as arguments: kernels of a program that differ in constants alone become one kernel.

The numbers in which they differ are read from an array that each call is given. Where kernels agree, the
number stays in the kernel. So do integers and the exponents of powers, for which a compiler knows
shorter code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from msgspec.structs import replace

from engine.lowering.loops import Compute, Kernel, Node, Number, Place, Pointer, ReadElement, walk
from engine.lowering.lower import Lowering
from engine.lowering.operations import FLOATS
from engine.lowering.steps import Step
from engine.tensor.type import TensorType


def share_kernels(lowering: Lowering) -> None:
    """Make kernels that differ in constants alone one kernel, in all steps of `lowering`."""
    alike: dict[Kernel, dict[Kernel, list[Step]]] = {}
    variants: dict[int, list[Step]] = {}
    for step in lowering.table.steps:
        if step.kernel is not None:
            variants.setdefault(id(step.kernel), []).append(step)
    for steps in variants.values():
        kernel = steps[0].kernel
        assert kernel is not None
        alike.setdefault(_without_constants(kernel), {}).setdefault(kernel, []).extend(steps)
    for group in alike.values():
        if len(group) > 1:
            _share(lowering, group)


def _without_constants(kernel: Kernel) -> Kernel:
    """Return `kernel` with no value in the constants that may be arguments."""
    free = _free_constants(kernel)
    body = tuple(
        Number(node.target, node.dtype, b"") if isinstance(node, Number) and node in free else node
        for node in kernel.body
    )
    return replace(kernel, body=body, summary="")


def _free_constants(kernel: Kernel) -> set[Node]:
    powers = [node for node in walk(kernel.body) if isinstance(node, Compute) and node.op == "pow"]
    exponents = {node.arguments[1] for node in powers}
    return {
        node
        for node in kernel.body
        if isinstance(node, Number) and node.dtype in FLOATS and node.target not in exponents
    }


def _share(lowering: Lowering, group: dict[Kernel, list[Step]]) -> None:
    """Give all steps of `group` one kernel, and each its constants."""
    bodies = list(zip(*[kernel.body for kernel in group], strict=True))
    differing = [position for position, nodes in enumerate(bodies) if len(set(nodes)) > 1]
    shared = _with_arguments(next(iter(group)), differing)
    for kernel, steps in group.items():
        registers = [_bound(lowering, numbers) for numbers in _by_dtype(kernel, differing).values()]
        for step in steps:
            step.kernel = shared
            step.arguments += tuple(registers)
            step.memory += (None,) * len(registers)


def _by_dtype(kernel: Kernel, positions: Sequence[int]) -> dict[str, list[Number]]:
    found: dict[str, list[Number]] = {}
    for position in positions:
        node = kernel.body[position]
        assert isinstance(node, Number)
        found.setdefault(node.dtype, []).append(node)
    return found


def _with_arguments(kernel: Kernel, positions: Sequence[int]) -> Kernel:
    """Return `kernel` with the constants at `positions` of its body read from arrays, one for each dtype."""
    numbers = _by_dtype(kernel, positions)
    reads = {number: _read(number, place) for group in numbers.values() for place, number in enumerate(group)}
    body = tuple(
        new
        for position, node in enumerate(kernel.body)
        for new in (reads[cast(Number, node)] if position in positions else (node,))
    )
    return Kernel(
        (*kernel.parameters, *(Pointer(_array(dtype), dtype) for dtype in numbers)),
        body,
        (*kernel.arguments, *(("constants", dtype) for dtype in numbers)),
        kernel.summary,
    )


def _read(number: Number, position: int) -> tuple[Node, ...]:
    pointer = _array(number.dtype)
    if position == 0:
        return (ReadElement(number.target, Place(pointer)),)
    at = f"{number.target}_at"
    index = Number(at, "int64", position.to_bytes(8, "little"))
    return (index, ReadElement(number.target, Place(pointer, ((at,),))))


def _array(dtype: str) -> str:
    return f"constants_{dtype}"


def _bound(lowering: Lowering, numbers: Sequence[Number]) -> int:
    """Return the register of an array of `numbers`, which is stored with the program."""
    register = lowering.table.new()
    dtype = np.dtype(numbers[0].dtype)
    data = np.frombuffer(b"".join(number.value for number in numbers), dtype.newbyteorder("<")).astype(dtype)
    constant = TensorType(dtype.name, data.shape).make_constant(data)
    lowering.constants.append((register, constant))
    return register
