"""User functions, compiled by numba to be linked into kernels.

Each is compiled from scratch for this, without wrappers and with the options of its decorator; a plain
Python function gets numpy's rules for division by 0. An entry with a C interface is put before it:

    int32 entry(number or (address, int64 length per dimension) per argument, result *)

It returns 0, or 1 if the function raised. A bool is a byte.
"""

# mypy: disable-error-code="no-untyped-call,attr-defined"
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba.core import cgutils, compiler, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.np.arrayobj import populate_array

from cachegraph.numba_cache.fresh_compilation import fresh_compilation
from cachegraph.object_code.elf import read_symbols
from engine.codegen.llvm.modules import USERS_FUNCTIONS, open_module
from engine.codegen.numba.linking import isolate
from engine.graph.user_ops import DESCRIBED
from engine.lowering.operations import FLOATS, INTEGERS
from engine.runtime.externals import is_allowed
from engine.runtime.target import process_level
from engine.scalar.embedded import Embedded

TYPES: dict[str, Any] = {
    **{dtype: getattr(types, dtype) for dtype in (*FLOATS, *INTEGERS)},
    "bool": types.boolean,
}
"""numba's type for the numbers of each dtype."""

_STATUS, _WORD, _BYTE = ir.IntType(32), ir.IntType(64), ir.IntType(8)
_RETURNED = re.compile(r"^\s*ret i32 (\S+)", re.MULTILINE)
"""A function that numba compiles returns a status: 0 unless it raised an exception."""

_CHECKED = "checked"
_DEFINITION = re.compile(rf"^define [^\n]*@{_CHECKED}\(.*?^\}}", re.MULTILINE | re.DOTALL)

_entries: dict[str, bytes] = {}
"""The bitcode of functions that may be parts of kernels. One name always means the same function."""


def entry_bitcode(embedded: Embedded, symbol: str) -> bytes:
    """Return a module that defines only `symbol`, the entry of `embedded`; made once per process.

    Raises FunctionRefused if numba refuses the function, or if its code is not fit for a kernel.
    """
    with global_compiler_lock:
        if embedded.name not in _entries:
            compiled = _compile_fresh(embedded)
            _check_code(embedded, compiled)
            module = llvm.parse_assembly(str(_entry(embedded, compiled, symbol)))
            module.link_in(compiled.library._get_module_for_linking(), preserve=True)
            isolate(module, symbol)
            _entries[embedded.name] = module.as_bitcode()
    return _entries[embedded.name]


def _compile_fresh(embedded: Embedded) -> Any:
    """Return `embedded` as numba compiles it now.

    Raises FunctionRefused if numba refuses it, if it returns another kind of number, or contains
    addresses of this process.
    """
    try:
        with fresh_compilation(DESCRIBED):
            found = _compile(embedded)
    except Exception as error:
        raise embedded.refused(f"{type(error).__name__}: {error}") from error
    _check(embedded, found)
    return found


def _check(embedded: Embedded, compiled: Any) -> None:
    result, due = types.unliteral(compiled.signature.return_type), TYPES[embedded.result]
    if _kind(result) > _kind(due):
        raise embedded.refused(f"it returns {result} instead of {embedded.result}")
    if compiled.library.has_dynamic_globals:
        raise embedded.refused("it has addresses of this process, or large arrays, in it")


def dispatcher_like(function: Any) -> Any:
    """Return a new dispatcher of `function`, with the same options if it is a dispatcher.

    A plain function gets numpy's rules for division by 0. With NUMBA_DISABLE_JIT the function itself is
    returned.
    """
    plain = getattr(function, "py_func", function)
    if plain is function:
        return numba.njit(error_model="numpy")(plain)
    options = {name: value for name, value in function.targetoptions.items() if name != "nopython"}
    pipeline = function._compiler.pipeline_class
    return numba.njit(locals=function.locals, pipeline_class=pipeline, **options)(plain)


def _check_code(embedded: Embedded, compiled: Any) -> None:
    """Raise FunctionRefused if the code needs more than a kernel may call.

    A function on arrays must not raise: a kernel could not pass its exception on to the caller.
    """
    library = compiled.library._final_module.clone()
    library.get_function(compiled.fndesc.llvm_func_name).name = _CHECKED
    isolate(library, _CHECKED)
    with open_module(library.as_bitcode(), process_level()) as module:
        module.optimize(USERS_FUNCTIONS)
        text, symbols = str(module), read_symbols(module.object_code())
    refused = sorted(name for name in symbols.undefined if not is_allowed(name))
    if refused:
        raise embedded.refused(f"its code needs {', '.join(refused)}")
    (function,) = _DEFINITION.findall(text)
    if embedded.ranks is not None and set(_RETURNED.findall(function)) != {"0"}:
        raise embedded.refused("it may raise an exception")


def _entry(embedded: Embedded, compiled: Any, symbol: str) -> ir.Module:
    """Return a module with the entry of `compiled`."""
    context = cpu_target.target_context
    described, convention = compiled.fndesc, context.call_conv
    module = context.create_module(symbol)
    result = _interface_type(embedded.result)
    parameters = [*_parameters(embedded), result.as_pointer()]
    entry = ir.Function(module, ir.FunctionType(_STATUS, parameters), symbol)
    builder = ir.IRBuilder(entry.append_basic_block())
    arguments = list(_arguments(builder, described.argtypes, entry.args[:-1]))
    function = context.declare_function(module, described)
    status, value = convention.call_function(
        builder, function, described.restype, described.argtypes, arguments
    )
    with cgutils.if_unlikely(builder, status.is_error):
        builder.ret(_STATUS(1))
    value = context.cast(builder, value, described.restype, TYPES[embedded.result])
    builder.store(builder.zext(value, result) if embedded.result == "bool" else value, entry.args[-1])
    builder.ret(_STATUS(0))
    return module


def _parameters(embedded: Embedded) -> Iterator[ir.Type]:
    for position, dtype in enumerate(embedded.arguments):
        if embedded.ranks is None:
            yield _interface_type(dtype)
        else:
            yield from [ir.PointerType(), *[_WORD] * embedded.ranks[position]]


def _interface_type(dtype: str) -> ir.Type:
    return _BYTE if dtype == "bool" else cpu_target.target_context.get_value_type(TYPES[dtype])


def _arguments(builder: ir.IRBuilder, of: Sequence[Any], words: Sequence[ir.Value]) -> Iterator[ir.Value]:
    """Yield the arguments of types `of`; an array is built from its address and its lengths."""
    context = cpu_target.target_context
    rest = list(words)
    for argument in of:
        if not isinstance(argument, types.Array):
            number = rest.pop(0)
            yield builder.trunc(number, ir.IntType(1)) if isinstance(argument, types.Boolean) else number
            continue
        array = context.make_array(argument)(context, builder)
        size = context.get_abi_sizeof(context.get_data_type(argument.dtype))
        pointer, lengths = rest.pop(0), [rest.pop(0) for _ in range(argument.ndim)]
        strides = [_WORD(size)]
        for extent in lengths[:0:-1]:
            strides.insert(0, builder.mul(strides[0], extent))
        data = builder.bitcast(pointer, context.get_data_type(argument.dtype).as_pointer())
        populate_array(array, data, lengths, strides[: argument.ndim], _WORD(size), None)
        yield array._getvalue()


def _compile(embedded: Embedded) -> Any:
    dispatcher = dispatcher_like(embedded.function)
    if not hasattr(dispatcher, "targetoptions"):
        raise RuntimeError("NUMBA_DISABLE_JIT is set")
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    flags: Any = compiler.Flags()
    cpu_target.options.parse_as_flags(flags, dispatcher.targetoptions)
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    arguments = tuple(TYPES[dtype] for dtype in embedded.arguments)
    if embedded.ranks is not None:
        known = zip(arguments, embedded.ranks, strict=True)
        arguments = tuple(types.Array(of, rank, "C", readonly=True) for of, rank in known)
    return compiler.compile_extra(
        cpu_target.typing_context,
        cpu_target.target_context,
        dispatcher.py_func,
        arguments,
        None,
        flags,
        dispatcher.locals,
        pipeline_class=dispatcher._compiler.pipeline_class,
    )


def _kind(of: Any) -> int:
    """Return 0 for bool, 1 for integers, 2 for other real numbers, 3 for everything else."""
    kinds = (types.Boolean, types.Integer, types.Float)
    return next((kind for kind, cls in enumerate(kinds) if isinstance(of, cls)), 3)
