"""Modes, by name and made."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compiling.mode import MODES, Mode, get_mode, predefined_optimizers
from engine.rewriting import EquilibriumGraphRewriter, MergeOptimizer, node_rewriter

pytestmark = pytest.mark.usefixtures("kernels_once")


def test_every_name_is_a_mode_and_none_is_the_default():
    for name, mode in MODES.items():
        assert get_mode(name) is mode
    assert get_mode(None) is get_mode("FAST_RUN")
    assert get_mode(mode) is mode
    assert get_mode("fast_run") is get_mode("FAST_RUN")
    assert Mode("cvm_nogc") == Mode("numba")


@pytest.mark.parametrize("wrong", ["JAX", "x"])
def test_an_unknown_name_is_refused_with_those_that_there_are(wrong):
    with pytest.raises(ValueError, match="FAST_RUN, FAST_COMPILE, NUMBA, NUMPY"):
        get_mode(wrong)


def test_an_unknown_linker_is_refused():
    with pytest.raises(ValueError, match="'numba' or 'numpy'"):
        Mode("jax")


def test_including_and_excluding_make_new_modes():
    mode = get_mode("FAST_RUN")
    assert mode.excluding("fusion") != mode
    assert mode.excluding("fusion") == mode.excluding("fusion")
    assert mode.including("x").optimizer.include >= mode.optimizer.include
    assert mode.requiring("inplace").optimizer == mode.optimizer.requiring("inplace")
    assert mode == get_mode("FAST_RUN")


def test_modes_are_hashable_and_pickle():
    mode = get_mode("FAST_RUN").excluding("fusion")
    assert pickle.loads(pickle.dumps(mode)) == mode
    assert len({mode, get_mode("FAST_RUN"), get_mode("NUMPY")}) == 3


def test_excluding_fusion_fuses_nothing():
    x = pt.vector("x")
    z = pt.exp(x) * pt.sin(x) + 1
    assert "Composite" in engine.dprint(engine.function([x], z), file="str")
    assert "Composite" not in engine.dprint(
        engine.function([x], z, mode=get_mode(None).excluding("fusion")), file="str"
    )


@pytest.mark.parametrize("mode", [*MODES, Mode("numba", MODES["NUMPY"].optimizer), Mode("numpy")], ids=str)
def test_every_mode_gives_the_same_values(mode):
    x, m = pt.vector("x"), pt.matrix("m")
    cost = pt.sum(pt.log(1 + pt.exp(pt.dot(m, x)))) * 2
    f = engine.function([m, x], [cost, engine.grad(cost, x)], mode=mode)
    matrix, value = np.arange(6.0).reshape(3, 2) / 4, np.array([0.5, -1.0])
    product = matrix @ value
    found = f(matrix, value)
    np.testing.assert_allclose(found[0], 2 * np.log1p(np.exp(product)).sum())
    np.testing.assert_allclose(found[1], 2 * matrix.T @ (1 / (1 + np.exp(-product))))


def test_pytensors_names_of_optimizers_are_choices_of_rewrites():
    for name, query in predefined_optimizers.items():
        assert Mode("numpy", name).optimizer is query
    assert "inplace" in predefined_optimizers["o3"].exclude
    assert "fusion" in predefined_optimizers["o2"].include


def test_a_rewriter_is_an_optimizer_and_its_functions_are_not_cached():
    x = pt.vector("x")

    @node_rewriter([pt.exp(x).owner.op])
    def exp_to_sin(fgraph, node):
        return [pt.sin(node.inputs[0])]

    for linker in ("numba", "numpy"):
        mode = Mode(linker, EquilibriumGraphRewriter([exp_to_sin]))
        f = engine.function([x], pt.exp(x) + 0, mode=mode)
        assert np.array_equal(f([1.0]), np.sin([1.0]))
        assert f.cache_info.outcome == "bypass"
        assert "Add" in engine.dprint(f, file="str")  # nothing else is rewritten
    with pytest.raises(TypeError, match="its optimizer is a rewriter"):
        mode.including("fusion")


def test_a_rewriter_sees_the_loops_of_a_function_as_they_are_written():
    x = pt.vector("x")
    total = engine.scan(lambda each, so_far: so_far + each, [x], [pt.zeros(())], return_updates=False)[-1]
    f = engine.function([x], total, mode=Mode("numba", MergeOptimizer()))
    assert f([1.0, 2.0, 4.0]) == 7.0


@pytest.mark.parametrize("optimizer", [None, MergeOptimizer()], ids=str)
def test_an_index_without_a_kernel_is_computed_without_rewrites(optimizer):
    v, mask = pt.vector("v"), pt.vector("mask", dtype="bool")
    f = engine.function([v, mask], pt.sin(v[mask]), mode=Mode("numba", optimizer))
    assert np.array_equal(f([1.0, 2.0], [False, True]), np.sin([2.0]))
