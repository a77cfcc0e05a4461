"""Scalar operations as functions of arrays, for a CPU level, and how far results are from exact ones."""

import ctypes
import math

import mpmath
import numpy as np

from engine.codegen.compile import compile_kernel
from engine.lowering.kernels.elementwise import elementwise
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.operations import SIGNATURES
from engine.lowering.statements import Statement
from engine.runtime.container import pack_kernel
from engine.runtime.kernel_interface import OK
from engine.runtime.load import Loader
from engine.runtime.target import process_triple

LOADER = Loader()


def calling(op, dtype, level, rank=1, last_is_repeated=False):
    """Return a function that applies the operation to arrays, by a loop or, for rank 0, by one call.

    If the last argument is repeated, it is an array of one element.
    """
    count = SIGNATURES[op].arity
    arguments = tuple(("input", number) for number in range(count))
    operands = [NestOperand(dtype, (False,) * rank)] * count
    if last_is_repeated:
        operands[-1] = NestOperand(dtype, (True,) * rank)
    kernel = elementwise(operands, [Statement(op, arguments, dtype)], [("value", 0)], rank)
    symbol = f"k_{op}_{dtype}_{level.replace('-', '_')}_{rank}{'_repeated' * last_is_repeated}"
    return calling_kernel(kernel, symbol, level)


def calling_kernel(kernel, symbol, level):
    """Return a function that runs an elementwise kernel of vectors or numbers; its result has the dtype
    `result`, or that of the first input."""
    code = compile_kernel(kernel, symbol, level)
    linked = LOADER.load(pack_kernel(symbol, process_triple(), level, code), symbol)
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(linked.address)

    def call(*inputs, result=None):
        found, following = np.empty_like(inputs[0], dtype=result), iter(inputs)
        words = [
            next(following).ctypes.data
            if kind == "input"
            else {"output": found.ctypes.data, "extent": found.size}[kind]
            for kind, *_ in kernel.arguments
        ]
        assert function(np.array(words, dtype=np.int64).ctypes.data) == OK
        return found

    call.linked = linked
    return call


def error_in_ulps(found, expected, dtype):
    """Return |found - expected| in units of the last place of `expected`; overflow must be infinite."""
    limits = np.finfo(dtype)
    if abs(expected) >= mpmath.mpf(2) ** limits.maxexp:
        return 0.0 if np.isinf(found) and (found > 0) == (expected > 0) else math.inf
    exponent = max(mpmath.frexp(expected)[1] - 1, limits.minexp)
    if np.isinf(found):  # as if the range did not end
        found = mpmath.sign(float(found)) * mpmath.mpf(2) ** limits.maxexp
    return float(
        abs(mpmath.mpf(float(found) if isinstance(found, np.generic) else found) - expected)
        / mpmath.mpf(2) ** (exponent - limits.nmant)
    )
