"""Names of PyTensor's internals: a test that asks for one of them is no measure of the language."""

from __future__ import annotations

from explanations.difference import difference
from pytensor_tests.explained import ExplainedDifference

LINKERS = "it tests PyTensor's linkers, C code or debugging modes"
FUNCTION = "it looks into PyTensor's compiled function"
SCAN = "it looks into the data structures behind PyTensor's Scan"
PRIVATE = "it asks for a private function"
REWRITE = "it asks for the functions that one of PyTensor's rewrites is made of"
OVERWRITTEN = "it asks what is overwritten"

NAMES = {
    "pytensor.link.": LINKERS,
    "pytensor.compile.debug.": LINKERS,
    "pytensor.tensor.blas.": LINKERS,
    "'DebugMode'; it must be": LINKERS,
    "Composite.c_code": LINKERS,
    "Elemwise.c_code": LINKERS,
    "_Maker.linker": FUNCTION,
    "_Maker.expanded_inputs": FUNCTION,
    "_Maker.inputs": FUNCTION,
    "_Maker.mode": FUNCTION,
    "Mode._optimizer": FUNCTION,
    "Function.vm": FUNCTION,
    "Function._finder": FUNCTION,
    "Function._potential_": FUNCTION,
    "Function.unpack_single": FUNCTION,
    "Function.input_storage": FUNCTION,
    "pytensor.compile.rebuild.": FUNCTION,
    "pytensor.scan.rewriting.scan_remove_unused": SCAN,
    "pytensor.scan.utils.ScanArgs": SCAN,
    "pytensor.scan.utils.ScanProfileStats": SCAN,
    "ScanInfo.": SCAN,
    "pytensor.tensor.rewriting.subtensor._": PRIVATE,
    "pytensor.scalar.math._make_scalar_loop": PRIVATE,
    "pytensor.tensor.einsum._": PRIVATE,
    "._props": PRIVATE,
    "pytensor.tensor.rewriting.blas.": LINKERS,
    "RandomVariableWithCoreShape": LINKERS,
    "pytensor.compile.aliasing.": FUNCTION,
    "pytensor.config.vm__lazy": LINKERS,
    "pytensor.config.profile_optimizer": LINKERS,
    "destroyhandler_tolerate_aliased": FUNCTION,
    "pytensor.compile.ops.ViewOp": LINKERS,
    "pytensor.tensor.math._dot": PRIVATE,
    "pytensor.tensor.math._conj": PRIVATE,
    "pytensor.tensor.rewriting.math.parse_mul_tree": REWRITE,
    "pytensor.tensor.rewriting.math.is_1pexp": REWRITE,
    "Elemwise.inplace_pattern": OVERWRITTEN,
}
"""A part of what a test says, and the reason."""

INTERNAL: tuple[ExplainedDifference, ...] = tuple(
    difference("tests/*", name, reason) for name, reason in NAMES.items()
)
EXPLAINED: tuple[ExplainedDifference, ...] = ()
