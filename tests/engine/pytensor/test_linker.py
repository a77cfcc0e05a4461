"""What users touch on a function of PyTensor's stays PyTensor's when the engine computes it."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

import engine.pytensor
from engine.pytensor.linker import EngineLinker

PROCESS = """
import engine.pytensor, numpy as np, pytensor, pytensor.tensor as pt
engine.pytensor.register()
x = pt.dmatrix("x")
f = pytensor.function([x], pt.exp(x).sum(axis=0) / 3, mode="ENGINE")
print(f(np.ones((2, 2))).tolist(), engine.pytensor.explain(f))
"""


def without_seconds(text: str) -> str:
    """Return an explanation without what its stages took."""
    return re.sub(r", [\d.]+ s$", "", text, flags=re.MULTILINE)


@pytest.fixture(autouse=True)
def registered() -> None:
    engine.pytensor.register()


def test_modes_are_chosen_by_name() -> None:
    x = pt.dvector("x")
    assert isinstance(pytensor.function([x], x + 1, mode="ENGINE").maker.linker, EngineLinker)
    with pytensor.config.change_flags(mode="ENGINE"):
        assert "the engine computes" in engine.pytensor.explain(pytensor.function([x], x + 1))
    with pytest.raises(ValueError, match="NONSENSE"), pytensor.config.change_flags(mode="NONSENSE"):
        pass
    assert "NumbaLinker" in engine.pytensor.explain(pytensor.function([x], x + 1, mode="NUMBA"))


def test_shared_variables_are_updated_and_copies_have_their_own() -> None:
    x, total = pt.dscalar("x"), pytensor.shared(np.array(1.0), "total")
    f = pytensor.function([x], total * 2, updates={total: total + x}, mode="ENGINE")
    assert [float(f(2.0)), float(f(3.0)), float(total.get_value())] == [2.0, 6.0, 6.0]
    other = pytensor.shared(np.array(10.0), "other")
    copy = f.copy(swap={total: other})
    assert [float(copy(1.0)), float(other.get_value()), float(total.get_value())] == [20.0, 11.0, 6.0]
    total.set_value(0.0)
    assert float(f.copy(delete_updates=True)(1.0)) == 0.0
    assert float(total.get_value()) == 0.0


def test_a_pickled_function_comes_back_with_its_values() -> None:
    x, total = pt.dscalar("x"), pytensor.shared(np.array(1.0), "total")
    f = pytensor.function([x], x + total, updates={total: total + x}, mode="ENGINE")
    f(2.0)
    again = pickle.loads(pickle.dumps(f))
    assert float(again(1.0)) == 4.0
    assert "the engine computes" in engine.pytensor.explain(again)


def test_no_result_shares_memory_with_an_argument_a_shared_value_or_another_result() -> None:
    x, s, t = pt.dvector("x"), pytensor.shared(np.zeros(3), "s"), pytensor.shared(np.zeros(3), "t")
    outputs = [x, x, t, x[1:], x.reshape((3, 1)), pt.erfcx(x), s + 1, pt.constant(np.ones(3))]
    f = pytensor.function([x], outputs, updates={s: x}, mode="ENGINE")
    given = np.ones(3)
    held = [given, t.get_value(borrow=True), *f(given), s.get_value(borrow=True), *f(given)]
    pairs = [(a, b) for position, a in enumerate(held) for b in held[position + 1 :]]
    assert not any(np.shares_memory(a, b) for a, b in pairs)


def test_arguments_are_checked_by_pytensor_and_errors_name_its_nodes() -> None:
    x, m = pt.dvector("x"), pt.dmatrix("m")
    f = pytensor.function([x, m], x + m.sum(axis=0), mode="ENGINE")
    with pytest.raises(TypeError, match=r"Wrong number of dimensions"):
        f(1.0, np.ones((1, 1)))
    with pytest.raises(ValueError, match=r"(?s)shapes \(2,\) \(3,\).*HINT: Set PyTensor"):
        f(np.ones(2), np.ones((2, 3)))
    f.trust_input = True
    assert f(np.ones(2), np.asfortranarray(np.ones((4, 2)))).tolist() == [5.0, 5.0]


def test_small_integers_are_what_they_are_outside() -> None:
    x = pt.vector("x", dtype="int8")
    f = pytensor.function(
        [x], [x * x, x.sum(), pt.erfcx(x)[0], x + pt.constant(1, dtype="int8")], mode="ENGINE"
    )
    square, total, _, following = f(np.array([100, -128, 127], "int8"))
    assert (square.dtype, square.tolist()) == ("int8", [16, 0, 1])
    assert (total.dtype, int(total)) == ("int64", 99)
    assert (following.dtype, following.tolist()) == ("int8", [101, -127, -128])


def test_draws_are_those_of_pytensor_and_advance_the_generator() -> None:
    def draws(mode: str) -> list[np.ndarray]:
        rng = pytensor.shared(np.random.default_rng(7))
        following, draw = pt.random.normal(pt.arange(3) * 2.0, 1.0, rng=rng).owner.outputs
        f = pytensor.function([], pt.exp(draw), updates={rng: following}, mode=mode)
        return [f(), f()]

    found = draws("ENGINE")
    assert not np.array_equal(*found)
    np.testing.assert_allclose(found, draws("NUMBA"), rtol=1e-14)


def test_what_the_engine_has_no_type_for_runs_between_its_stages() -> None:
    x = pt.dvector("x")
    z = pt.exp(x) * 2
    spectrum = pt.cast(z, "complex128") * 1j
    f = pytensor.function([x], [pt.imag(spectrum).sum() + z, z], mode="ENGINE")
    first, second = f(np.array([0.0, 1.0]))
    np.testing.assert_allclose(second, 2 * np.exp([0.0, 1.0]))
    np.testing.assert_allclose(first, second.sum() + second)
    text = engine.pytensor.explain(f)
    assert text.count("the engine computes") == 2
    assert "complex128" in text


def test_a_second_process_finds_what_the_first_compiled() -> None:
    first, second = (
        subprocess.run([sys.executable, "-c", PROCESS], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert without_seconds(first).replace("miss", "hit") == without_seconds(second)
    assert without_seconds(second).rstrip().endswith("nodes: hit")
