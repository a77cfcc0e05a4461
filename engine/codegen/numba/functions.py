"""User functions on numbers, compiled by numba to be linked into kernels.

Each is compiled from scratch for this, in numba's full contexts, without wrappers, and with the options
of its decorator; a plain Python function gets numpy's rules for division by 0. The functions that it
calls are linked along. compile.py checks that its code needs no more than a kernel may.
"""

# mypy: disable-error-code="no-untyped-call,attr-defined"
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, compiler, types
from numba.core.registry import cpu_target
from numba.np.arrayobj import populate_array

from cachegraph.numba_cache.fresh_compilation import fresh_compilation
from engine.codegen.numba.contexts import TYPES
from engine.runtime.kernel_interface import FUNCTION_RAISED
from engine.scalar.embedded import DESCRIBED, Embedded

Generate = Callable[..., ir.Value]

_compiled: dict[str, Any] = {}
"""The compiled functions by name; one name always means the same function."""


def compile_function(embedded: Embedded) -> Any:
    """Return `embedded` as numba compiles it, once per process.

    Raises FunctionRefused if numba refuses it, if it returns another kind of number, or contains
    addresses of this process.
    """
    found = _compiled.get(embedded.name)
    if found is None:
        try:
            with fresh_compilation(DESCRIBED):
                found = _compile(embedded)
        except Exception as error:
            raise embedded.refused(f"{type(error).__name__}: {error}") from error
        _check(embedded, found)
        _compiled[embedded.name] = found
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


def generator_of(name: str, result: str) -> Generate:
    """Return the function that emits the call of the compiled function `name` and the check for an exception.

    An array is passed as its address and then its lengths.
    """
    found = _compiled[name]

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        described, convention = found.fndesc, context.call_conv
        arguments = list(_arrays(builder, described.argtypes, arguments))
        context.active_code_library.add_linking_library(found.library)
        function = context.declare_function(builder.module, described)
        status, value = convention.call_function(
            builder, function, described.restype, described.argtypes, arguments
        )
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_value(builder, ir.Constant(ir.IntType(32), FUNCTION_RAISED))
        return context.cast(builder, value, described.restype, TYPES[result])

    return generate


def _arrays(builder: ir.IRBuilder, of: Sequence[Any], words: Sequence[ir.Value]) -> Iterator[ir.Value]:
    """Yield the arguments of types `of`; an array is built from its address and its lengths."""
    rest = list(words)
    for argument in of:
        if not isinstance(argument, types.Array):
            yield rest.pop(0)
            continue
        context = cpu_target.target_context
        array = context.make_array(argument)(context, builder)
        size = context.get_abi_sizeof(context.get_data_type(argument.dtype))
        pointer, lengths = rest.pop(0), [rest.pop(0) for _ in range(argument.ndim)]
        strides = [ir.Constant(ir.IntType(64), size)]
        for extent in lengths[:0:-1]:
            strides.insert(0, builder.mul(strides[0], extent))
        data = builder.bitcast(pointer, context.get_data_type(argument.dtype).as_pointer())
        populate_array(
            array, data, lengths, strides[: argument.ndim], ir.Constant(ir.IntType(64), size), None
        )
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
