"""PyTensor's module paths: what its users import from a module is there, in the engine's module of that path."""

import ast
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import engine
import engine.tensor as pt
from engine.graph.op import Op
from engine.paths import PLACES

ROOT = Path(engine.__file__).parent

IMPORTED = """
from engine.compile import DeepCopyOp, SharedVariable, as_op, optdb
from engine.compile.executor import Function
from engine.compile.mode import OPT_FAST_COMPILE, Mode
from engine.graph import FunctionGraph, node_rewriter
from engine.graph.destroyhandler import DestroyHandler
from engine.graph.op import HasInnerGraph, Op, io_connection_pattern
from engine.graph.utils import InconsistencyError, MissingInputError
from engine.scalar import Abs, Cast, Exp, Sigmoid, UnaryScalarOp, float64, upgrade_to_float
from engine.scalar.basic import Ceil, Composite, GE, Identity, Maximum, ScalarOp, add, upcast_out
from engine.scalar.loop import ScalarLoop
from engine.scalar.math import Erfc, Psi, Softplus, erfcx, gammainc
from engine.scan import scan_checkpoints
from engine.tensor.basic import Alloc, ARange, Eye, Join, alloc, as_tensor_variable, constant, eye, switch
from engine.tensor.blockwise import Blockwise, vectorize_node
from engine.tensor.einsum import Einsum, einsum
from engine.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from engine.tensor.extra_ops import CumOp, Repeat, Unique, broadcast_arrays, cumsum
from engine.tensor.linalg.decomposition.cholesky import Cholesky, cholesky
from engine.tensor.linalg.inverse import MatrixInverse, pinv
from engine.tensor.linalg.solvers.triangular import SolveTriangular, solve_triangular
from engine.tensor.linalg.summary import Det, slogdet
from engine.tensor.math import All, Any, Argmax, Dot, Max, Sum, add, dot, exp, max, mean, sigmoid, sum, var
from engine.tensor.pad import Pad, pad
from engine.tensor.random.rewriting import local_subtensor_rv_lift
from engine.tensor.random.variable import RandomGeneratorSharedVariable
from engine.tensor.reshape import JoinDims, split_dims
from engine.tensor.rewriting.basic import constant_folding, register_canonicalize, register_specialize
from engine.tensor.rewriting.linalg.solvers import psd_solve_to_chol_solve
from engine.tensor.rewriting.shape import ShapeFeature
from engine.tensor.shape import Reshape, Shape_i, SpecifyShape, reshape, shape_padleft, specify_shape
from engine.tensor.sort import SortOp, argsort, sort
from engine.tensor.special import LogSoftmax, Softmax, gammaln, log_softmax, softmax
from engine.tensor.subtensor import AdvancedSubtensor, IncSubtensor, Subtensor, inc_subtensor, set_subtensor, take
from engine.tensor.type import TensorType, dmatrix, dvector, float_dtypes, lscalar, scalars, tensor3, vector
from engine.tensor.variable import TensorConstant, TensorVariable
"""


def statements() -> list[str]:
    return [ast.unparse(statement) for statement in ast.parse(IMPORTED).body]


@pytest.mark.parametrize("statement", statements())
def test_names_are_imported_from_the_modules_that_pytensor_has_them_in(statement):
    exec(statement, {})


def test_a_name_is_what_pytensor_calls_so_and_not_what_the_module_imports():
    from engine.tensor.math import All, Any, Argmax

    assert [issubclass(each, Op) for each in (All, Any, Argmax)] == [True] * 3


def test_each_place_has_its_name():
    for root, names in PLACES.items():
        for name, module in names.items():
            found = getattr(import_module(module), name)
            assert getattr(import_module(root), name, found) is found, (root, name)


def test_importing_a_module_hides_no_function_of_its_name():
    for name in ("einsum", "pad", "reshape", "sort"):
        module = import_module(f"engine.tensor.{name}")
        assert getattr(module, name) is getattr(pt, name)
    assert pt.sort(pt.dvector()).dtype == "float64"
    names = {name for name in dir(pt) if find_spec(f"engine.tensor.{name}") and not name.startswith("_")}
    functions = {name for name in names if callable(getattr(pt, name))}
    assert functions == {"einsum", "pad", "reshape", "shape", "sort"}


def test_a_package_has_its_modules_without_an_import_of_them():
    program = """
import engine, engine.tensor
assert engine.compile.mode.get_default_mode() and engine.graph.basic.Constant
assert engine.scalar.basic.UnaryScalarOp and engine.tensor.math.sum and engine.tensor.rewriting.basic
assert callable(engine.tensor.sort) and callable(engine.tensor.shape)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_module_has_no_other_names():
    for path in (
        "engine.scalar.basic",
        "engine.tensor.math",
        "engine.tensor.sort",
        "engine.graph",
        "engine.compile",
    ):
        module = import_module(path)
        for name in ("no_such_name", "_private", "__wrapped__"):
            with pytest.raises(AttributeError, match=f"module '{path}' has no attribute '{name}'"):
                getattr(module, name)
    with pytest.raises(ImportError, match="cannot import name 'no_such_name'"):
        exec("from engine.tensor.type import no_such_name", {})


def test_every_path_is_a_module_that_can_be_imported_first():
    paths = [
        file for file in ROOT.rglob("*.py") if "under PyTensor's path" in file.read_text(encoding="utf-8")
    ]
    assert len(paths) > 60
    for file in paths:
        module = ".".join(["engine", *file.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")
        assert find_spec(module) is not None
        assert import_module(module)
