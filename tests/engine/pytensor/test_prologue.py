"""What needs data alone is computed once, and a call gives what it would give without that."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.raise_op import Assert
from scipy.special import gammaln

import cachegraph.pytensor
import engine.pytensor
from cachegraph.cache import default_cache
from cachegraph.pytensor import explain
from cachegraph.pytensor.stored.large_constants import DataCell
from engine.pytensor import room as prologue_room
from engine.pytensor.cached_linker import _key as program_key_of
from engine.pytensor.program import BoundProgram, StagedProgram
from engine.pytensor.stored_program import StoredProgram
from tests.cachegraph.pytensor.entry_points import declared

SEEN = np.linspace(1.0, 9.0, 50)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(declared(tmp_path / "points"))
    cachegraph.pytensor.install(backend="engine")
    yield
    cachegraph.pytensor.uninstall()


class Passed(Op):
    """An Op that the engine does not know: its result is a view of its input, or its input overwritten."""

    __props__ = ("is_overwriting",)

    def __init__(self, is_overwriting: bool) -> None:
        self.is_overwriting = is_overwriting
        if is_overwriting:
            self.destroy_map = {0: [0]}
        else:
            self.view_map = {0: [0]}

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = inputs[0]
        if self.is_overwriting:
            inputs[0] *= 2


class Counted:
    """A step of a program that counts its runs."""

    def __init__(self, step: Any) -> None:
        self.step, self.count = step, 0

    def __call__(self, values: Any) -> None:
        self.count += 1
        self.step(values)


def counted(program: StagedProgram) -> Counted:
    """The only step of the prologue, from now on counted."""
    [step] = program.once_steps
    program.once_steps = [Counted(step)]
    return program.once_steps[0]


def made(inputs: list[Any], outputs: list[Any], data: list[int]) -> StagedProgram:
    fgraph = FunctionGraph(inputs, outputs, clone=False)
    return StagedProgram(fgraph, fgraph.toposort(), data)


def bound(program: StagedProgram, *values: Any) -> BoundProgram:
    """The program on values of its inputs, of which the data cannot change."""
    return program.bound([DataCell([v]) if n in program.data else [v] for n, v in enumerate(values)])


def variables() -> tuple[Any, Any]:
    return pt.dvector("x"), pt.tensor("seen", dtype="float64", shape=(50,))


def density(seen: np.ndarray, size: int = 1) -> Any:
    """A function of a parameter: the log density of counts."""
    x = pt.dscalar("x")
    return pytensor.function([x], [pt.sum(x * seen - pt.exp(x) - pt.gammaln(pt.constant(seen) + size))])


def due(seen: np.ndarray, x: float = 0.5) -> float:
    return float(np.sum(x * seen - np.exp(x) - gammaln(seen + 1)))


def test_what_needs_data_alone_is_computed_at_the_first_call_and_kept() -> None:
    x, seen = variables()
    program = made([x, seen], [x * pt.gammaln(seen + 1), pt.exp(seen[:3]).sum() + x], [1])
    step = counted(program)
    call, other = bound(program, np.ones(50), SEEN), bound(program, np.ones(50), SEEN[::-1].copy())
    assert step.count == 0
    for _ in range(3):
        np.testing.assert_allclose(call()[0], gammaln(SEEN + 1))
        np.testing.assert_allclose(call()[1], 1 + np.exp(SEEN[:3]).sum() * np.ones(50))
    assert step.count == 1
    np.testing.assert_allclose(other()[0], gammaln(SEEN[::-1] + 1))
    np.testing.assert_allclose(call()[0], gammaln(SEEN + 1))


def test_what_needs_constants_alone_is_folded_and_no_part_of_the_prologue() -> None:
    """As an input of the calls it would hide from their graph that it is known: here, that it is a 2."""
    x, seen = variables()
    two = pt.add(pt.constant(1, dtype="int8"), pt.constant(1, dtype="int8")).dimshuffle("x")
    program = made([x, seen], [x**two * seen**two], [1])
    [kept] = program.kept
    [step] = program.steps
    assert sorted(step.inputs) == [0, kept]
    ops = [str(node.op) for node in step.function.maker.fgraph.toposort()]
    assert not any("pow" in op for op in ops), ops
    np.testing.assert_allclose(bound(program, 2 * np.ones(50), SEEN)()[0], 4 * SEEN**2)


def test_storage_that_takes_other_values_is_read_at_each_call() -> None:
    x, seen = variables()
    program = made([x, seen], [x * pt.gammaln(seen + 1)], [1])
    step, cell = counted(program), [SEEN]
    call = program.bound([[np.ones(50)], cell])
    np.testing.assert_allclose(call()[0], gammaln(SEEN + 1))
    cell[0] = SEEN + 3
    np.testing.assert_allclose(call()[0], gammaln(SEEN + 4))
    assert step.count == 2


def test_views_results_and_what_overwrites_are_left_to_the_calls() -> None:
    x, seen = variables()
    assert made([x, seen], [x * seen[::-1], x + seen.dimshuffle("x", 0)], [1]).kept == []
    assert made([x, seen], [pt.exp(seen), x], [1]).kept == []
    for is_overwriting in (True, False):
        program = made([x, seen], [Passed(is_overwriting)(pt.exp(seen)) + x], [1])
        assert program.kept == []
        call = bound(program, np.zeros(50), SEEN)
        for _ in range(2):
            np.testing.assert_allclose(call()[0], np.exp(SEEN) * (2 if is_overwriting else 1))


def test_a_caller_that_overwrites_results_changes_no_later_call() -> None:
    x, seen = variables()
    kept = pt.exp(seen)
    outputs = [
        kept,
        Passed(False)(kept),
        kept.dimshuffle("x", 0),
        kept[::2],
        Passed(False)(seen * 2),
        kept + x,
    ]
    call = bound(made([x, seen], outputs, [1]), np.zeros(50), SEEN)
    first = [result.copy() for result in call()]
    for result in call():
        result *= -1
    for one, other in zip(call(), first, strict=True):
        np.testing.assert_array_equal(one, other)


def test_results_that_pytensor_makes_after_a_refusal_are_the_callers_too() -> None:
    x, seen = variables()
    kept = pt.exp(seen)
    # The engine does not broadcast an increment, PyTensor does.
    program = made([x, seen], [kept.dimshuffle("x", 0), pt.inc_subtensor(pt.zeros(50)[:], kept[:1] * x)], [1])
    call = bound(program, np.ones(1), SEEN)
    first = [result.copy() for result in call()]
    for result in call():
        result *= -1
    for one, other in zip(call(), first, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_larger_than_its_room_is_computed_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    x, seen = variables()
    outer = seen[:, None] * seen[None, :]
    outputs = [outer * x, x * pt.exp(outer).sum(), x * pt.exp(seen)]
    found = []
    for room, kept in ((50 * 50 * 8 + 1000, 3), (1000, 2), (8, 1), (0, 0)):
        monkeypatch.setattr(prologue_room, "KEPT_BYTES", room)
        monkeypatch.setattr(prologue_room, "KEPT_TIMES", 0)
        program = made([x, seen], outputs, [1])
        assert len(program.kept) == kept
        found.append(bound(program, np.ones(50), SEEN / 9)())
    for results in found:
        for one, other in zip(results, found[0], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14)


def test_what_turns_out_larger_than_its_room_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    x, seen = variables()
    (places,) = pt.nonzero(seen > 5)
    program = made([x, seen], [x[places]], [1])
    assert len(program.kept) == 1
    step = counted(program)
    for room, runs in ((8 * 25, 1), (8 * 25 - 1, 3)):
        monkeypatch.setattr(prologue_room, "KEPT_BYTES", room)
        monkeypatch.setattr(prologue_room, "KEPT_TIMES", 0)
        step.count, call = 0, bound(program, np.arange(50.0), SEEN)
        for _ in range(3):
            np.testing.assert_array_equal(call()[0], np.arange(50.0)[SEEN > 5])
        assert step.count == runs


def test_empty_data_are_data() -> None:
    x, seen = pt.dscalar("x"), pt.tensor("seen", dtype="float64", shape=(0,))
    call = bound(made([x, seen], [x + pt.exp(seen).sum(), x * pt.exp(seen)], [1]), np.array(2.0), np.zeros(0))
    assert [np.shape(result) for result in call()] == [(), (0,)]
    assert float(call()[0]) == 2.0


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32"])
def test_data_of_other_dtypes_give_what_pytensor_gives(dtype: str) -> None:
    x, seen = pt.dscalar("x"), pt.tensor("seen", dtype=dtype, shape=(50,))
    outputs = [x * pt.sum(seen), x + pt.cast(seen, "float64") ** 3, pt.switch(pt.eq(seen, 1), x, seen)]
    values = [np.array(0.5), (SEEN % 2).astype(dtype)]
    program = made([x, seen], outputs, [1])
    assert program.kept
    expected = pytensor.function([x, seen], outputs, mode="FAST_COMPILE")(*values)
    call = bound(program, *values)
    for _ in range(2):
        for one, other in zip(call(), expected, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other)


def test_checks_of_data_raise_pytensors_error_at_each_call_and_not_before(installed: None) -> None:
    x = pt.dscalar("x")
    for largest in (9.0, 5.0):
        seen = pt.constant(SEEN)
        checked = Assert("must be small")(seen, pt.all(seen <= largest))
        f = pytensor.function([x], [x * pt.gammaln(checked), x * pt.exp(checked)])
        for _ in range(2):
            if largest == 9.0:
                np.testing.assert_allclose(f(2.0)[0], 2 * gammaln(SEEN))
            else:
                with pytest.raises(AssertionError, match=r"(?s)must be small.*HINT"):
                    f(2.0)


def test_other_data_of_the_same_shape_are_a_hit_and_no_number_of_theirs_is_stored(installed: None) -> None:
    first = density(SEEN)
    assert [float(first(0.5)[0]), float(first(0.5)[0])] == pytest.approx([due(SEEN)] * 2)
    again = density(SEEN + 3)
    program = again.vm.jit_fn
    assert explain(again).outcome == "hit"
    assert isinstance(program, StoredProgram)
    assert program.kept
    assert "once, of data alone: the engine computes" in engine.pytensor.explain(again)
    assert float(again(0.5)[0]) == pytest.approx(due(SEEN + 3))
    assert float(first(0.5)[0]) == pytest.approx(due(SEEN))
    payload = default_cache().lookup(program_key_of(again.maker._stored)).payload
    for numbers in (SEEN, gammaln(SEEN + 1), np.sum(gammaln(SEEN + 1)), SEEN + 3):
        assert numbers.tobytes()[:8] not in payload
        assert numbers.tobytes()[:8].hex().encode() not in payload
    assert explain(density(SEEN, size=2)).outcome == "miss"


def test_copies_and_pickles_compute_their_own(installed: None) -> None:
    x = pt.dscalar("x")
    scale = pytensor.shared(np.ones(50), "scale")
    f = pytensor.function(
        [x], [pt.sum(scale * pt.gammaln(pt.constant(SEEN) + 1)) * x], updates={scale: scale * 2}
    )
    total = float(gammaln(SEEN + 1).sum())
    assert float(f(1.0)[0]) == pytest.approx(total)
    other = pytensor.shared(np.full(50, 10.0), "other")
    again = pickle.loads(pickle.dumps(f))
    for function, factor in (
        (f.copy(), 2),
        (f.copy(swap={scale: other}), 10),
        (copy.deepcopy(f), 2),
        (again, 2),
    ):
        assert function.vm.jit_fn.kept
        assert float(function(1.0)[0]) == pytest.approx(factor * total)


def test_shared_variables_are_no_data(installed: None) -> None:
    x = pt.dscalar("x")
    value = pytensor.shared(SEEN, "value")
    f = pytensor.function(
        [x], [x * pt.sum(pt.gammaln(value + 1)), x * pt.sum(pt.gammaln(pt.constant(SEEN) + 1))]
    )
    assert len(f.vm.jit_fn.kept) == 1
    for added in (0, 3):
        value.set_value(SEEN + added)
        found = [float(result) for result in f(1.0)]
        assert found == pytest.approx([gammaln(SEEN + added + 1).sum(), gammaln(SEEN + 1).sum()])


def test_draws_whose_parameters_are_data_are_drawn_at_each_call(installed: None) -> None:
    rng = pytensor.shared(np.random.default_rng(3))
    following, draw = pt.random.normal(pt.exp(pt.constant(SEEN)), 1.0, rng=rng, return_next_rng=True)
    f = pytensor.function([], [draw], updates={rng: following})
    assert f.vm.jit_fn.kept
    numpys = np.random.default_rng(3)
    for _ in range(2):
        np.testing.assert_allclose(f()[0], numpys.normal(np.exp(SEEN), 1.0))


def test_a_program_that_is_gone_is_linked_with_its_prologue_again(installed: None) -> None:
    density(SEEN)
    key = program_key_of(density(SEEN).maker._stored)
    assert default_cache()._store.delete([key.digest]) == 1
    again = density(SEEN + 1)
    assert explain(again).outcome == "hit"
    assert float(again(0.5)[0]) == pytest.approx(due(SEEN + 1))
    assert again.vm.jit_fn.kept
