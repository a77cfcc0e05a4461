"""The functions that printed kernels call, as numba intrinsics: numba types them, `emission.py` writes their LLVM IR."""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from engine.backend.numba.emission import constant_of, emit_operation
from engine.backend.numba.printer import Intrinsic
from engine.backend.operations import ITEM_SIZES, SIGNATURES

_TYPES: dict[str, Any] = {
    "float64": types.float64,
    "float32": types.float32,
    "int64": types.int64,
    "int32": types.int32,
    "bool": types.boolean,
}
_BYTE = ir.IntType(8)
_WORD = ir.IntType(64)
_POINTERS: dict[str, Any] = {
    dtype: types.CPointer(types.uint8 if dtype == "bool" else of) for dtype, of in _TYPES.items()
}


@cache
def function_of(described: Intrinsic) -> Any:
    """Return the numba intrinsic that `described` asks for; one object for one description."""
    return _MAKERS[described.kind](described)


def _pointer(described: Intrinsic) -> Any:
    result = _POINTERS[described.dtypes[0]]

    @intrinsic
    def pointer(typing: Any, address: Any) -> Any:
        return result(types.int64), lambda context, builder, _, arguments: builder.inttoptr(
            arguments[0], context.get_value_type(result)
        )

    return pointer


def _constant(described: Intrinsic) -> Any:
    dtype = described.dtypes[0]

    @intrinsic
    def constant(typing: Any) -> Any:
        return _TYPES[dtype](), lambda context, builder, signature, arguments: constant_of(
            dtype, described.value
        )

    return constant


def _compute(described: Intrinsic) -> Any:
    op, operand = described.op, described.dtypes[0]
    result = _TYPES[_result_dtype(op, described.dtypes)]

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        return emit_operation(builder, op, described.dtypes, arguments)

    @intrinsic
    def one(typing: Any, a: Any) -> Any:
        return result(_TYPES[operand]), generate

    @intrinsic
    def two(typing: Any, a: Any, b: Any) -> Any:
        return result(_TYPES[operand], _TYPES[operand]), generate

    @intrinsic
    def choose(typing: Any, condition: Any, a: Any, b: Any) -> Any:
        return result(types.boolean, _TYPES[operand], _TYPES[operand]), generate

    if op == "where":
        return choose
    return two if op in SIGNATURES and SIGNATURES[op].arity == 2 else one


def _result_dtype(op: str, dtypes: tuple[str, ...]) -> str:
    return "bool" if op in SIGNATURES and SIGNATURES[op].compares else dtypes[-1]


def _load(described: Intrinsic) -> Any:
    dtype = described.dtypes[0]

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        loaded = builder.load(
            builder.gep(arguments[0], [arguments[1]], inbounds=True), align=ITEM_SIZES[dtype]
        )
        return builder.icmp_unsigned("!=", loaded, _BYTE(0)) if dtype == "bool" else loaded

    @intrinsic
    def load(typing: Any, pointer: Any, index: Any) -> Any:
        return _TYPES[dtype](_POINTERS[dtype], types.int64), generate

    return load


def _store(described: Intrinsic) -> Any:
    dtype = described.dtypes[0]

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        pointer, index, value = arguments
        stored = builder.zext(value, _BYTE) if dtype == "bool" else value
        builder.store(stored, builder.gep(pointer, [index], inbounds=True), align=ITEM_SIZES[dtype])
        return context.get_dummy_value()

    @intrinsic
    def store(typing: Any, pointer: Any, index: Any, value: Any) -> Any:
        return types.void(_POINTERS[dtype], types.int64, _TYPES[dtype]), generate

    return store


def _array(described: Intrinsic) -> Any:
    dtype = described.dtypes[0]

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        element = context.get_value_type(_POINTERS[dtype]).pointee
        return cgutils.alloca_once(builder, element, size=described.size)

    @intrinsic
    def array(typing: Any) -> Any:
        return _POINTERS[dtype](), generate

    return array


def _address(described: Intrinsic) -> Any:
    dtype = described.dtypes[0]

    @intrinsic
    def address(typing: Any, pointer: Any, index: Any) -> Any:
        return types.int64(
            _POINTERS[dtype], types.int64
        ), lambda context, builder, _, arguments: builder.ptrtoint(
            builder.gep(arguments[0], [arguments[1]]), _WORD
        )

    return address


def _literal(described: Intrinsic) -> Any:
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

    @intrinsic
    def literal(typing: Any) -> Any:
        return types.int64(), generate

    return literal


def _call(described: Intrinsic) -> Any:
    """The external takes addresses; passed as int64 they go in the same registers and stack slots."""
    signature: Any = types.void(*[types.int64] * described.size)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        function_type = ir.FunctionType(ir.VoidType(), [_WORD] * described.size)
        builder.call(cgutils.get_or_insert_function(builder.module, function_type, described.op), arguments)
        return context.get_dummy_value()

    parameters = ", ".join(f"a{position}" for position in range(described.size))
    scope: dict[str, Any] = {"signature": signature, "generate": generate}
    exec(f"def call(typing, {parameters}):\n    return signature, generate\n", scope)
    return intrinsic(scope["call"])


_MAKERS: dict[str, Callable[[Intrinsic], Any]] = {
    "pointer": _pointer,
    "constant": _constant,
    "compute": _compute,
    "load": _load,
    "store": _store,
    "array": _array,
    "address": _address,
    "literal": _literal,
    "call": _call,
}
