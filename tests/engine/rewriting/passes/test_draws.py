"""Parts and arrangements of draws are draws of parts; values are drawn from parameters nearly without spread."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import FunctionGraph
from engine.random.op import RandomVariable
from engine.rewriting import (
    EquilibriumGraphRewriter,
    local_dimshuffle_rv_lift,
    local_rv_size_lift,
    local_subtensor_rv_lift,
    sidestep_unused_rng_consumer,
)
from engine.tensor.none_type import NoneTypeT

LIFTS = (local_rv_size_lift, local_dimshuffle_rv_lift, local_subtensor_rv_lift)
NARROW = 1e-9
MU = np.arange(24.0).reshape(4, 3, 2)
MASK = np.array([True, False, True, True])


def _rewritten(*outputs, rewrites=LIFTS):
    fgraph = FunctionGraph(None, list(outputs), clone=False)
    EquilibriumGraphRewriter(rewrites).rewrite(fgraph)
    return fgraph.outputs


def _is_draw(variable):
    return variable.owner is not None and isinstance(variable.owner.op, RandomVariable)


def _close(before, after):
    """Compare draws; the rewritten one is drawn after the other was copied."""
    expected = before.eval()
    assert after.type.ndim == expected.ndim
    np.testing.assert_allclose(after.eval(), expected, rtol=1e-6, atol=1e-6)


def _normal(mu=MU, size=None):
    return pt.random.normal(mu, NARROW, size=size, rng=engine.shared(np.random.default_rng(3)))


@pytest.mark.parametrize(
    "part",
    [
        lambda x: x[2],
        lambda x: x[-1, 1:],
        lambda x: x[:, ::-1, 0],
        lambda x: x[MASK],
        lambda x: x[:, np.array([True, False, True])],
        lambda x: x[np.ones((4, 3), "bool") & MASK[:, None]],
        lambda x: x[1:1],
        lambda x: x.T,
        lambda x: x.dimshuffle(2, "x", 0, 1, "x"),
        lambda x: x.transpose(1, 0, 2)[0],
    ],
)
@pytest.mark.parametrize("size", [None, (4, 3, 2)])
@pytest.mark.parametrize("mu", [MU, MU[:1], MU[:, :1], MU[0, :, :1]])
def test_a_part_of_a_draw_is_a_draw_of_parts(part, size, mu):
    if size is None and mu.shape != MU.shape:
        mu = MU[..., :1] + np.zeros(2)
    before = part(_normal(mu, size))
    (after,) = _rewritten(part(_normal(mu, size)))
    assert _is_draw(after)
    _close(before, after)


def test_symbolic_indices_and_sizes_are_followed():
    mu, n, i = pt.vector("mu"), pt.iscalar("n"), pt.iscalar("i")
    draw = pt.random.normal(mu, NARROW, size=(n, 3), rng=engine.shared(np.random.default_rng(3)))
    (after,) = _rewritten(draw[i, :n])
    assert _is_draw(after)
    np.testing.assert_allclose(after.eval({mu: [1.0, 2.0, 3.0], n: 2, i: 1}), [1.0, 2.0], rtol=1e-6)


def test_the_batch_of_vectors_moves_and_their_elements_stay():
    mean = np.arange(6.0).reshape(3, 2)

    def draw():
        rng = engine.shared(np.random.default_rng(3))
        return pt.random.multivariate_normal(mean, np.eye(2) * NARROW**2, rng=rng)

    for part in (lambda x: x[1], lambda x: x[np.array([True, False, True]), :], lambda x: x[None]):
        (after,) = _rewritten(part(draw()))
        assert _is_draw(after)
        _close(part(draw()), after)
    for part in (lambda x: x[:, 0], lambda x: x.T, lambda x: x[np.ones((3, 2), "bool")]):
        assert not _is_draw(_rewritten(part(draw()))[0])


def test_an_array_of_integers_may_select_twice_and_stays():
    assert not _is_draw(_rewritten(_normal()[np.array([0, 0])])[0])


def test_a_draw_that_something_else_reads_stays():
    draw = _normal()
    outputs = _rewritten(draw[0], draw.sum())
    assert not _is_draw(outputs[0])
    draw = _normal()
    first, shape = _rewritten(draw[0], draw.shape)  # its lengths are no numbers of it
    assert _is_draw(first)
    assert shape.eval().tolist() == [4, 3, 2]


def test_the_next_generator_is_that_of_the_new_draw():
    rng = pt.random.random_generator_type("rng")
    following, draw = pt.random.normal(MU, NARROW, rng=rng, return_next_rng=True)
    after, next_after = _rewritten(draw[0], following)
    assert after.owner is next_after.owner


def test_a_name_says_that_a_draw_was_moved():
    draw = _normal()
    draw.name = "x"
    assert _rewritten(draw[0])[0].name == "x_lifted"


@pytest.mark.parametrize("size", [(2, 4, 3, 2), (4, 3, 2)])
def test_a_size_becomes_repeated_parameters(size):
    before, (after,) = _normal(MU, size), _rewritten(_normal(MU, size))
    assert isinstance(after.owner.inputs[1].type, NoneTypeT)
    assert np.array_equal(after.eval(), before.eval())  # equal numbers: the lengths are equal


def test_a_draw_that_nothing_reads_is_stepped_over():
    rng = pt.random.random_generator_type("rng")
    following, _ = pt.random.normal(rng=rng, return_next_rng=True)
    last, draw = pt.random.normal(rng=following, return_next_rng=True)
    last, draw = _rewritten(last, draw, rewrites=[sidestep_unused_rng_consumer])
    assert draw.owner.inputs[0] is rng
    again = pt.random.normal(rng=rng)
    outputs = _rewritten(again, following, rewrites=[sidestep_unused_rng_consumer])
    assert outputs[1] is following  # the draw that is read may be merged with the other


def test_functions_draw_what_the_graph_says():
    """The lifts give other numbers, so that no function is compiled with them."""
    seed = np.random.default_rng(3)
    draw = pt.random.normal(0, 1, size=(3,), rng=engine.shared(seed))
    assert engine.function([], draw[2])() == np.random.default_rng(3).normal(0, 1, 3)[2]
