"""Numbers, slices, new axes and the ellipsis: numpy's meaning, by the reference and compiled."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine
import engine.tensor as pt
from engine import verify_grad
from engine.errors import LengthError
from engine.graph.reference import evaluate
from engine.tensor.slicing import IncSubtensor, Subtensor
from tests.engine.special_values import same

X = np.arange(24.0).reshape(4, 3, 2)
NUMBERS = st.none() | st.integers(-7, 7)
SLICES = st.builds(slice, NUMBERS, NUMBERS, NUMBERS.filter(lambda step: step != 0))
INDICES = st.lists(SLICES | st.none() | st.just(Ellipsis) | st.integers(-2, 1), max_size=3).filter(
    lambda items: items.count(Ellipsis) < 2
)


@given(INDICES.map(tuple))
def test_indexing_by_numbers_and_slices_is_numpys(index):
    x = pt.tensor3("x")
    expected = np.asarray(X[index])
    found = x[index]
    assert same(evaluate([x], [found], [X])[0], np.array(expected, order="C"))
    static = pt.tensor("x", "float64", X.shape)[index].type.shape
    assert static == expected.shape
    assert all(
        known in (None, length) for known, length in zip(found.type.shape, expected.shape, strict=True)
    )


def compiled_and_reference(inputs, outputs, values):
    """The results of both, the gradients of the first input included."""
    cost = sum(((output**2).sum() for output in outputs[1:]), (outputs[0] ** 2).sum())
    every = [*outputs, engine.grad(cost, inputs[0])]
    found, expected = (engine.function(inputs, every, mode=mode) for mode in ("FAST_RUN", "NUMPY"))
    for arguments in values:
        yield from zip(found(*arguments), expected(*arguments), strict=True)


def test_compiled_indexing_by_symbols_is_the_references(kernels_once):
    x, i, j, s = pt.dmatrix("x"), pt.lscalar("i"), pt.iscalar("j"), pt.lscalar("s")
    outputs = [
        x[i], x[:, i], x[i, -1], x[i:j], x[i:j:s], x[::s], x[:j:s, ::-2], x[i::s, 1:3], x.T[i:j:s, 0],
        x[None, i, ..., ::-1], x[1:-1], x[...], x[1:] - x[:-1], pt.exp(x[::-1]) + x, x[i:j, 1].sum(),
        pt.dot(x[1:3].T, x[1:3]), pt.dot(x[:2, :2], x[:2, 1:3].T), x[i:j].T.flatten(),
    ]  # fmt: skip
    value = np.linspace(-1, 1, 20).reshape(5, 4)
    points = [(1, 3, 1), (-2, 2, -1), (3, -5, -2), (-4, 9, 3), (0, 0, 2), (-1, -9, -9)]
    pairs = compiled_and_reference([x, i, j, s], outputs, [(value, *point) for point in points])
    for found, expected in pairs:
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_length_that_is_only_asked_for_is_right_without_rewrites(kernels_once):
    x, n = pt.dvector("x"), pt.iscalar("n")
    unrewritten = engine.Mode("numba", engine.compiling.mode.MODES["NUMPY"].optimizer)
    f = engine.function([x, n], pt.shape_i(pt.exp(x)[:n], 0), mode=unrewritten)
    assert f(np.ones(5), 3) == 3
    assert f(np.ones(5), -1) == 4


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize("index", [4, -5, 2**63 - 1, -(2**63)])
def test_a_number_out_of_range_is_named_with_axis_and_size(index, mode, kernels_once):
    x, i = pt.dmatrix("x"), pt.lscalar("i")
    f = engine.function([x, i], x[1:, i], mode=mode)
    with pytest.raises(IndexError, match=f"(?s)(?=.*index {index} )(?=.*axis 1)(?=.*size 4)"):
        f(np.ones((3, 4)), index)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_a_step_of_zero_is_refused(mode, kernels_once):
    x, s = pt.dvector("x"), pt.lscalar("s")
    with pytest.raises(ValueError, match="cannot be zero"):
        engine.function([x, s], x[::s], mode=mode)(np.ones(3), 0)
    with pytest.raises(ValueError, match="cannot be zero"):
        x[::0]


@pytest.mark.parametrize("index", [(0, 0, 0), (..., ...), (0, ..., 0, 0)])
def test_more_indices_than_axes_are_refused(index):
    with pytest.raises(IndexError, match=r"too many indices|one ellipsis"):
        pt.dmatrix("x")[index]


@pytest.mark.parametrize("index", [slice(0.5), slice(None, [1, 2]), slice("a")])
def test_parts_of_slices_are_integers(index):
    with pytest.raises(TypeError, match="are supported"):
        pt.dmatrix("x")[index]


def test_a_part_is_a_view_and_its_name_says_what_is_given():
    x, i = pt.dmatrix("x"), pt.lscalar("i")
    assert [str(v.owner.op) for v in (x[i], x[:, 1:], x[::i], x[...])] == [
        "Subtensor{i}",
        "Subtensor{:, a:}",
        "Subtensor{::c}",
        "Subtensor{...}",
    ]
    assert x[1:].owner.op.view_map == {0: [0]}
    assert Subtensor(["i", ":"]) == Subtensor(["i"]) != IncSubtensor(["i"])


@pytest.mark.parametrize(
    "part",
    [lambda x: x[1], lambda x: x[::-2, 1:], lambda x: x[:, 0], lambda x: x[2:1], lambda x: x[..., None]],
)
def test_gradients_are_those_of_finite_differences(part):
    verify_grad(part, [np.linspace(-1, 1, 12).reshape(4, 3)])


@pytest.mark.parametrize("sets", [True, False])
@pytest.mark.parametrize("shape", [(2, 2), (1, 2), (2,), ()])
def test_gradients_of_what_is_set_and_added_to(sets, shape):
    rng = np.random.default_rng(0)
    op = IncSubtensor([":b", "::c"], set_instead_of_inc=sets)
    verify_grad(lambda x, y: op(x, y, 2, 2), [rng.normal(size=(3, 4)), rng.normal(size=shape)])


@pytest.mark.parametrize("sets", [True, False])
def test_the_inplace_form_changes_the_array_itself(sets):
    x = pt.dvector("x")
    kinds = [IncSubtensor(["a:"], inplace, sets) for inplace in (False, True)]
    assert [op.destroy_map for op in kinds] == [{}, {0: [0]}]
    assert kinds[0] != kinds[1]
    results = []
    for op in kinds:
        value, cell = np.arange(4.0), [None]
        node = op.make_node(x, [5.0], 2)
        op.perform(node, [value, np.array([5.0]), np.array(2)], [cell])
        results.append(cell[0].tolist())
        assert (cell[0] is value) == op.inplace
    assert results[0] == results[1] == ([0, 1, 5, 5] if sets else [0, 1, 7, 8])


@pytest.mark.parametrize("change", [pt.set_subtensor, pt.inc_subtensor])
def test_what_is_given_for_a_part_has_the_lengths_of_the_part(change):
    x, y = pt.dcol("x"), pt.dvector("y")
    f = engine.function([x, y], change(x[0], y))
    assert f(np.zeros((2, 1)), [3.0]).tolist() == [[3.0], [0.0]]
    for unfit in ([1.0, 2.0], []):
        with pytest.raises(LengthError, match="does not fit what is indexed"):
            f(np.zeros((2, 1)), unfit)
