"""The functions that printed kernels call: their types, for numba, and the LLVM IR of each (emission.py).

They are registered with the contexts that compile kernels, each under one signature. numba's own
decorator for such functions refreshes its global context whenever one is typed: a sixth of a cold
start.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import ConcreteTemplate

from engine.codegen.numba.contexts import TYPES, contexts
from engine.codegen.numba.emission import constant_of, emit_operation
from engine.codegen.numba.printer import Intrinsic
from engine.lowering.operations import SIGNATURES
from engine.runtime.kernel_interface import ITEM_SIZES

Made = tuple[Any, Callable[..., ir.Value]]
"""The signature of a function, and the emitter of its LLVM IR from (context, builder, signature,
arguments).
"""

_BYTE = ir.IntType(8)
_WORD = ir.IntType(64)
_POINTERS: dict[str, Any] = {
    dtype: types.CPointer(types.uint8 if dtype == "bool" else of) for dtype, of in TYPES.items()
}


@cache
def function_of(described: Intrinsic) -> Any:
    """Return the function that `described` asks for, registered with the contexts; the same one each time."""
    signature, generate = _MAKERS[described.kind](described)

    def function(*_: Any) -> Any:
        raise TypeError(f"{described.name} is compiled into kernels; it cannot be called")

    template = type(described.name, (ConcreteTemplate,), {"key": function, "cases": [signature]})
    typing, target = contexts()
    typing.insert_global(function, types.Function(template))
    target.insert_func_defn([(generate, function, signature.args)])
    return function


def _pointer(described: Intrinsic) -> Made:
    result = _POINTERS[described.dtypes[0]]

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        return builder.inttoptr(arguments[0], context.get_value_type(result))

    return result(types.int64), generate


def _constant(described: Intrinsic) -> Made:
    dtype = described.dtypes[0]

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        return constant_of(dtype, described.value)

    return TYPES[dtype](), generate


def _compute(described: Intrinsic) -> Made:
    op, operand = described.op, described.dtypes[0]
    result = TYPES[_result_dtype(op, described.dtypes)]

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        return emit_operation(builder, op, described.dtypes, arguments)

    arity = SIGNATURES[op].arity if op in SIGNATURES else 1
    parameters = [types.boolean, *[TYPES[operand]] * 2] if op == "where" else [TYPES[operand]] * arity
    return result(*parameters), generate


def _function(described: Intrinsic) -> Made:
    from engine.codegen.numba.functions import generator_of  # loaded only for kernels with user functions

    *parameters, result = (TYPES[dtype] for dtype in described.dtypes)
    return result(*parameters), generator_of(described.op, described.dtypes[-1])


def _evaluate(described: Intrinsic) -> Made:
    """Call a function of arrays, whose ranks are `value`: each is passed as its address and its lengths."""
    from engine.codegen.numba.functions import generator_of

    *dtypes, result = described.dtypes
    parameters: list[Any] = []
    for dtype, rank in zip(dtypes, described.value, strict=True):
        parameters += [_POINTERS[dtype], *[types.int64] * rank]
    return TYPES[result](*parameters), generator_of(described.op, result)


def _result_dtype(op: str, dtypes: tuple[str, ...]) -> str:
    return "bool" if op in SIGNATURES and SIGNATURES[op].compares else dtypes[-1]


def _load(described: Intrinsic) -> Made:
    dtype = described.dtypes[0]

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        loaded = builder.load(
            builder.gep(arguments[0], [arguments[1]], inbounds=True), align=ITEM_SIZES[dtype]
        )
        return builder.icmp_unsigned("!=", loaded, _BYTE(0)) if dtype == "bool" else loaded

    return TYPES[dtype](_POINTERS[dtype], types.int64), generate


def _store(described: Intrinsic) -> Made:
    dtype = described.dtypes[0]

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        pointer, index, value = arguments
        stored = builder.zext(value, _BYTE) if dtype == "bool" else value
        builder.store(stored, builder.gep(pointer, [index], inbounds=True), align=ITEM_SIZES[dtype])
        return context.get_dummy_value()

    return types.void(_POINTERS[dtype], types.int64, TYPES[dtype]), generate


def _array(described: Intrinsic) -> Made:
    dtype = described.dtypes[0]

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        element = context.get_value_type(_POINTERS[dtype]).pointee
        return cgutils.alloca_once(builder, element, size=described.size)

    return _POINTERS[dtype](), generate


def _address(described: Intrinsic) -> Made:
    dtype = described.dtypes[0]

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        return builder.ptrtoint(builder.gep(arguments[0], [arguments[1]]), _WORD)

    return types.int64(_POINTERS[dtype], types.int64), generate


def _literal(described: Intrinsic) -> Made:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        value = ir.Constant(ir.ArrayType(_BYTE, len(described.value)), bytearray(described.value))
        variable = cgutils.add_global_variable(
            builder.module, value.type, builder.module.get_unique_name(".literal")
        )
        variable.initializer, variable.global_constant, variable.linkage, variable.align = (
            value,
            True,
            "internal",
            16,
        )
        return builder.ptrtoint(variable, _WORD)

    return types.int64(), generate


def _call(described: Intrinsic) -> Made:
    """Call an external, which takes addresses; int64s go in the same registers and stack slots."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        function_type = ir.FunctionType(ir.VoidType(), [_WORD] * described.size)
        builder.call(cgutils.get_or_insert_function(builder.module, function_type, described.op), arguments)
        return context.get_dummy_value()

    return types.void(*[types.int64] * described.size), generate


_MAKERS: dict[str, Callable[[Intrinsic], Made]] = {
    "pointer": _pointer,
    "constant": _constant,
    "compute": _compute,
    "function": _function,
    "evaluate": _evaluate,
    "load": _load,
    "store": _store,
    "array": _array,
    "address": _address,
    "literal": _literal,
    "call": _call,
}
