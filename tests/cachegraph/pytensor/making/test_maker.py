"""Functions from the cache are PyTensor's functions in every respect."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytensor
import pytensor.sparse
import pytensor.tensor as pt
import pytest
import scipy.sparse
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.executor import Function
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.raise_op import Assert, CheckAndRaise
from pytensor.scalar.basic import ScalarOp

import cachegraph.pytensor
from cachegraph.pytensor import explain
from cachegraph.pytensor.stored.externals import Context

VALUES = np.array([1.0, 2.0])


@pytest.fixture(autouse=True, scope="module")
def one_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Use one directory for this file, so that each function is compiled once."""
    directory = tmp_path_factory.mktemp("makers") / "cache"
    return directory


@pytest.fixture(autouse=True)
def installed(one_cache: Path, cache_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CACHEGRAPH_DIR", str(one_cache))
    cachegraph.pytensor.install()
    yield
    cachegraph.pytensor.uninstall()


def make(**options: Any) -> tuple[Any, Any, Any]:
    """Return a function with an update and a random draw, its shared variable and its generator."""
    x = pt.vector("x")
    count = pytensor.shared(np.float64(1.0), name="count")
    rng = pt.random.shared_rng(seed=11)
    next_rng, draw = rng.normal(size=2)
    outputs = [pt.exp(x) + count, draw]
    updates = {count: count + x[0], rng: next_rng}
    return pytensor.function([x], outputs, updates=updates, **options), count, rng


def hit(**options: Any) -> tuple[Any, Any, Any]:
    """Return the same function from the cache, its graph not read yet."""
    make()
    made = make(**options)
    assert explain(made[0]).outcome == "hit"
    assert made[0].maker._fgraph is None
    return made


def is_unread(function: Any) -> bool:
    return function.maker._fgraph is None


def same(first: Any, second: Any) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))


def test_a_hit_computes_what_a_miss_computes_and_reads_no_graph() -> None:
    missed, _, _ = make()
    found, count, rng = hit()
    for _ in range(3):
        assert same(missed(VALUES), found(VALUES))
    assert count.get_value() == 4.0
    rng.set_value(np.random.default_rng(5))
    expected = np.random.default_rng(5).normal(size=2)
    np.testing.assert_allclose(found(VALUES)[1], expected)
    assert is_unread(found)
    assert explain(found).found == {"function": [1, 0], "numba": [1, 0]}
    assert explain(found).compilations == 0
    assert explain(found).seconds_saved > explain(missed).seconds_saved


def test_names_are_those_of_the_function_at_hand() -> None:
    y = pt.vector("other")
    total = (y * 3.0).sum()
    total.name = "total"
    pytensor.function([y], pt.log(total) * y)
    z = pt.vector("mine")
    weighted = (z * 3.0).sum()
    weighted.name = "weighted"
    found = pytensor.function([z], pt.log(weighted) * z, name="named")
    assert explain(found).outcome == "hit"
    np.testing.assert_allclose(found(mine=VALUES), np.log(9.0) * VALUES)
    with pytest.raises(TypeError, match=r"Unknown input: other.*\(mine\)"):
        found(other=VALUES)
    shown = pytensor.dprint(found, file="str")
    assert "mine" in shown
    assert "other" not in shown
    assert "total" not in shown
    assert found.name == found.maker.fgraph.name == "named"


def test_what_a_maker_holds_is_what_pytensors_holds() -> None:
    missed, *_ = make()
    found, *_ = hit()
    ours, pytensors = found.maker, missed.maker
    for name in (
        "unpack_single",
        "return_none",
        "required",
        "accept_inplace",
        "trust_input",
        "function_class",
    ):
        assert getattr(ours, name) == getattr(pytensors, name), name
    assert ours.expanded_inputs is ours.inputs
    assert [spec.name for spec in ours.inputs] == [spec.name for spec in pytensors.inputs]
    assert [spec.variable for spec in ours.inputs] == ours.fgraph.inputs
    assert ours.linker.fgraph is ours.fgraph
    assert ours.fgraph.update_mapping == pytensors.fgraph.update_mapping
    assert [v.type for v in ours.fgraph.outputs] == [v.type for v in pytensors.fgraph.outputs]
    assert [str(n.op) for n in ours.fgraph.toposort()] == [str(n.op) for n in pytensors.fgraph.toposort()]
    assert {type(f) for f in ours.fgraph._features} <= {type(f) for f in pytensors.fgraph._features}
    assert hasattr(ours.fgraph, "destroyers") == hasattr(pytensors.fgraph, "destroyers")
    assert set(map(type, found.vm.storage_map)) == set(map(type, missed.vm.storage_map))
    assert len(found.vm.storage_map) == len(missed.vm.storage_map)
    assert found.vm.storage_map[ours.fgraph.inputs[1]] is found.get_shared()[0].container.storage
    assert found.vm.allow_gc == missed.vm.allow_gc
    assert type(found.vm.jit_fn).__mro__[-3:] == type(missed.vm.jit_fn).__mro__[-3:]


def test_the_graph_of_a_hit_may_be_rewritten_and_linked_again() -> None:
    found, *_ = hit()
    again = pytensor.function(found.maker.fgraph.inputs[:1], found.maker.fgraph.inputs[0] * 2)
    assert again(VALUES).tolist() == [2.0, 4.0]
    found.maker.fgraph.check_integrity()


def test_inputs_are_checked_as_ever() -> None:
    found, *_ = hit(name="checked")
    with pytest.raises(TypeError, match="Missing input: x"):
        found()
    with pytest.raises(TypeError, match="Too many parameter"):
        found(VALUES, 1.0, 2.0, 3.0)
    with pytest.raises(TypeError, match="Wrong number of dimensions") as wrong:
        found(np.zeros((2, 2)))
    assert "PyTensor function 'checked' at index 0" in wrong.value.__notes__[0]
    assert is_unread(found)


def test_trusted_input_is_not_checked() -> None:
    found, *_ = hit(trust_input=True)
    assert found.trust_input is True
    assert found(VALUES)[0].shape == (2,)


@pytest.mark.parametrize("verbosity", ["low", "high"])
def test_an_error_in_compiled_code_is_explained_by_the_graph(verbosity: str) -> None:
    def failing() -> Any:
        a, b = pt.vectors("a", "b")
        return pytensor.function([a, b], Assert("not zero")(a + b, pt.eq(a.sum(), 0)) * 3)

    messages = []
    for function in (failing(), failing()):
        with (
            pytensor.config.change_flags(exception_verbosity=verbosity),
            pytest.raises(AssertionError) as error,
        ):
            function(VALUES, VALUES)
        messages.append((str(error.value), getattr(error.value, "__notes__", [])))
    assert explain(function).outcome == "hit"
    assert messages[0][1] == messages[1][1]
    assert ("Apply node that caused the error" in messages[1][0]) == (verbosity == "high")
    assert "cachegraph" not in messages[1][0]  # where the graph was read says nothing about it


def test_a_copy_shares_the_code_and_the_state() -> None:
    found, count, _ = hit(name="first")
    copied = found.copy()
    assert copied.name == "first copy"
    assert copied.vm.jit_fn is found.vm.jit_fn
    assert explain(copied).reason == "a copy of a function"
    found(VALUES)
    copied(VALUES)
    assert count.get_value() == 3.0
    assert copied.copy(name="again").vm.jit_fn is found.vm.jit_fn


def test_a_copy_may_have_other_shared_variables() -> None:
    found, count, rng = hit()
    other, other_rng = pytensor.shared(np.float64(100.0)), pt.random.shared_rng(seed=11)
    copied = found.copy(swap={count: other, rng: other_rng})
    assert copied.vm.jit_fn is found.vm.jit_fn
    np.testing.assert_allclose(copied(VALUES)[0], np.exp(VALUES) + 100.0)
    assert (other.get_value(), count.get_value()) == (101.0, 1.0)
    assert same(copied(VALUES)[1:], (found(VALUES), found(VALUES))[1][1:])
    assert set(copied.get_shared()) == {other, other_rng}


def test_a_copy_without_updates_is_another_graph_and_linked_by_pytensor() -> None:
    found, count, _ = hit()
    with pytest.warns(UserWarning, match="still be mutated"):
        copied = found.copy(delete_updates=True)
    assert copied.vm.jit_fn is not found.vm.jit_fn
    np.testing.assert_allclose(copied(VALUES)[0], np.exp(VALUES) + 1.0)
    assert count.get_value() == 1.0


def test_a_copy_may_share_intermediate_memory() -> None:
    found, *_ = hit()
    copied = found.copy(share_memory=True)
    shared = [cell for v, cell in copied.vm.storage_map.items() if v not in copied.maker.fgraph.inputs]
    assert any(cell is other for cell in shared for other in found.vm.storage_map.values())


def test_a_copy_under_other_flags_is_linked_anew() -> None:
    found, *_ = hit()
    with pytensor.config.change_flags(numba__fastmath=not pytensor.config.numba__fastmath):
        copied = found.copy()
    assert copied.vm.jit_fn is not found.vm.jit_fn


@pytest.mark.parametrize("made_by", [make, hit])
def test_a_pickled_function_computes_the_same_and_reads_no_graph(made_by: Any) -> None:
    function, count, _ = made_by(name="pickled")
    function(VALUES)
    again = pickle.loads(pickle.dumps(function))
    assert type(again) is Function
    assert is_unread(again)
    assert same(again(VALUES), function(VALUES))
    assert same(again(x=VALUES), function(VALUES))
    assert count.get_value() == 4.0  # the copy's is its own
    assert (again.name, explain(again).outcome, explain(again).key) == (
        "pickled",
        "carried",
        explain(function).key,
    )
    assert [v.name for v in again.get_shared()] == ["count", None]
    assert is_unread(again)
    assert len(again.maker.fgraph.toposort()) == len(function.maker.fgraph.toposort())
    assert same(pickle.loads(pickle.dumps(again))(VALUES), function(VALUES))


def test_a_pickle_holds_neither_the_graph_it_was_made_of_nor_tags() -> None:
    x = pt.vector("x")
    x.tag.anything = lambda: None
    shared = pytensor.shared(VALUES, name="shared")
    shared.tag.anything = lambda: None
    function = pytensor.function([x], (x * shared).sum(), updates={shared: shared * 2})
    again = pickle.loads(pickle.dumps(function))
    assert (again(VALUES), again(VALUES)) == (5.0, 10.0)


@pytest.mark.parametrize("by_default", [False, True])
def test_what_is_pickled_with_a_function_stays_its_own(by_default: bool) -> None:
    x = pt.vector("x")
    shared = pytensor.shared(VALUES.copy(), name="shared")
    if by_default:
        shared.default_update = shared + 1
    function = pytensor.function([x], x * shared, updates={} if by_default else {shared: shared + 1})
    for again, y, other in (
        pickle.loads(pickle.dumps((function, x, shared))),
        copy.deepcopy((function, x, shared)),
    ):
        again(VALUES)
        assert other.get_value().tolist() == [2.0, 3.0]
        assert shared.get_value().tolist() == [1.0, 2.0]
        assert again.get_shared() == [other]
        assert again._finder[y] is again.input_storage[0]


def test_deep_copies_are_functions_of_their_own() -> None:
    found, count, _ = hit()
    deep = copy.deepcopy(found)
    assert deep.maker is not found.maker
    assert same(deep(VALUES), found(VALUES))
    assert count.get_value() == 2.0
    assert copy.copy(found).vm.jit_fn is found.vm.jit_fn


def test_a_function_may_overwrite_and_return_its_inputs() -> None:
    aliases = []
    for _ in range(2):
        x, y = pt.vector("x"), pt.vector("y")
        inputs = [pytensor.In(x, mutable=True), pytensor.In(y, borrow=True)]
        function = pytensor.function(inputs, [pytensor.Out(x + y, borrow=True), pytensor.Out(y, borrow=True)])
        first, second = VALUES.copy(), VALUES.copy()
        total, returned = function(first, second)
        assert (total.tolist(), returned.tolist()) == ([2.0, 4.0], [1.0, 2.0])
        aliases.append((np.shares_memory(total, first), np.shares_memory(returned, second)))
    assert explain(function).outcome == "hit"
    assert aliases == [(True, True)] * 2


def test_functions_of_nothing_and_of_constants() -> None:
    for _ in range(2):
        count = pytensor.shared(0.0)
        tick = pytensor.function([], None, updates={count: count + 1})
        assert tick() == []
        assert count.get_value() == 1.0
        assert pytensor.function([], [])() == []
        constant = pytensor.function([], [pt.constant(3.0), pytensor.Out(pt.constant(VALUES), borrow=True)])
        assert [np.asarray(value).tolist() for value in constant()] == [3.0, [1.0, 2.0]]
    assert explain(tick).outcome == explain(constant).outcome == "hit"


def test_memory_may_be_kept_between_calls_and_freed() -> None:
    for _ in range(2):
        x = pt.vector("x")
        from pytensor.link.numba.linker import NumbaLinker

        mode = Mode(NumbaLinker(allow_gc=False), "fast_run")
        function = pytensor.function([x], x * 5.0, mode=mode)
        assert function(VALUES).tolist() == [5.0, 10.0]
        assert function.vm.allow_gc is False
        assert function.output_storage[0].data is not None
        function.free()
        assert function.output_storage[0].data is None
    assert explain(function).outcome == "hit"


class Doubled(Op):
    """A user Op that only Python computes."""

    __props__ = ("factor",)

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [pt.as_tensor(x)], [x.type()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = inputs[0] * self.factor


@pytest.mark.filterwarnings("ignore:Numba will use object mode")
def test_users_ops_of_any_class_are_those_of_the_graph_in_hand() -> None:
    class Local(Doubled):
        pass

    for _ in range(2):
        x = pt.vector("x")
        op = Local(3.0)
        function = pytensor.function([x], Doubled(2.0)(op(x)))
        assert function(VALUES).tolist() == [6.0, 12.0]
    assert explain(function).outcome == "hit"
    assert op in [node.op for node in function.maker.fgraph.toposort()]
    assert any(node.op is op for node in function.maker.fgraph.toposort())


class Held(Doubled):
    """An Op whose instances PyTensor finds equal."""

    __props__ = ()


class Nameless(Doubled):
    """An Op that equals only itself."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__


@pytest.mark.filterwarnings("ignore:Numba will use object mode")
def test_ops_that_pytensor_takes_for_equal_are_not_computed_in_each_others_place() -> None:
    for _ in range(2):
        x, y = pt.vectors("x", "y")
        function = pytensor.function([x, y], [Held(2.0)(x), Held(3.0)(y)])
        assert [result.tolist() for result in function(VALUES, VALUES)] == [[2.0, 4.0], [3.0, 6.0]]
    assert explain(function).outcome == "hit"


@pytest.mark.filterwarnings("ignore:Numba will use object mode")
def test_ops_that_are_alike_may_be_one_or_two(caplog: pytest.LogCaptureFixture) -> None:
    for one in (False, True, False):
        x, y, z = pt.vectors("x", "y", "z")
        first = Nameless(2.0)
        second = first if one else Nameless(2.0)
        outputs = [first(x), second(y), Nameless(5.0)(z)]
        function = pytensor.function([x, y, z], outputs)
        results = [result.tolist() for result in function(VALUES, VALUES, VALUES)]
        assert results == [[2.0, 4.0], [2.0, 4.0], [5.0, 10.0]]
        assert sorted(node.op.factor for node in function.maker.fgraph.toposort()) == [2.0, 2.0, 5.0]
    assert explain(function).outcome == "hit"
    assert not caplog.records


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"mode": "FAST_COMPILE"}, "the linker is a VMLinker, not numba's"),
        ({"profile": True}, "it is profiled"),
        ({"mode": "NanGuardMode"}, "the mode is a NanGuardMode"),
    ],
)
def test_what_is_not_cached_says_so(options: dict[str, Any], reason: str) -> None:
    x = pt.vector("x")
    function = pytensor.function([x], x + 1, **options)
    assert (explain(function).outcome, explain(function).reason) == ("bypass", reason)
    assert function(VALUES).tolist() == [2.0, 3.0]


def test_a_graph_that_is_given_is_linked_as_it_is() -> None:
    from pytensor.graph.fg import FunctionGraph

    x = pt.vector("x")
    fgraph = FunctionGraph([x], [x + 1], clone=False)
    mode = Mode("numba", None)
    made = mode.function_maker([pytensor.In(x)], [x + 1], mode, fgraph=fgraph).create()
    assert explain(made).reason == "its graph was given, and is linked as it is"
    assert made.maker.fgraph is fgraph


def test_a_cache_that_is_off_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHEGRAPH_MODE", "off")
    function, *_ = make()
    assert (explain(function).outcome, explain(function).reason) == ("bypass", "CACHEGRAPH_MODE is off")


def test_where_nothing_may_be_compiled_a_miss_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    make()
    monkeypatch.setenv("CACHEGRAPH_ON_MISS", "error")
    assert explain(make()[0]).outcome == "hit"
    x = pt.vector("x")
    with pytest.raises(cachegraph.CacheMissError, match="function entry"):
        pytensor.function([x], pt.sin(x) * 123.0)


def test_ops_that_hold_types_and_exceptions_are_stored() -> None:
    for _ in range(2):
        x = pt.vector("x")
        checked = CheckAndRaise(ValueError, "positive")(x, pt.gt(x.sum(), 0))
        function = pytensor.function([x], checked + pt.cast(x > 1, np.float32))
        assert function(VALUES).tolist() == [1.0, 3.0]
    assert explain(function).outcome == "hit"
    with pytest.raises(ValueError, match="positive"):
        function(-VALUES)


def test_graphs_that_hold_sparse_matrices_are_stored() -> None:
    matrix = scipy.sparse.csr_matrix(np.array([[1.0, 0.0], [2.0, 3.0]]))
    x = pt.vector("x")
    found = [pytensor.function([x], pytensor.sparse.dot(matrix, x)) for _ in range(2)]
    assert [explain(function).outcome for function in found] == ["miss", "hit"]
    assert [function(VALUES).tolist() for function in found] == [[1.0, 8.0]] * 2
    assert found[1].maker.fgraph.apply_nodes


@pytest.mark.parametrize("reduce", [pt.sum, pt.max, pt.all, pt.prod, pt.cumsum])
def test_ops_that_have_run_in_python_are_stored(reduce: Any) -> None:
    """Constant folding runs them: they cache what they compute with."""
    x = pt.vector("x")
    reduced = reduce(x * 3.0)
    pytensor.function([x], reduced, mode=Mode("py", None))(VALUES)
    found = [pytensor.function([x], [reduced]) for _ in range(2)]
    assert [explain(function).outcome for function in found] == ["miss", "hit"]
    assert same(found[0](VALUES), found[1](VALUES))


def test_what_is_read_from_the_store_warns_of_nothing() -> None:
    """Even if variables of 64 bits are an error, a stored graph may hold them."""
    for _ in range(2):
        x = pt.fvector("x")
        function = pytensor.function(
            [x], pt.cast(OpFromGraph([x], [pt.cast(x, "float64") + 1.5])(x), "float32")
        )
    assert explain(function).outcome == "hit"
    before = cachegraph.counters().bypasses
    with pytensor.config.change_flags(warn_float64="raise"):
        assert function.maker.fgraph.apply_nodes
    assert cachegraph.counters().bypasses == before


def test_what_gives_the_types_of_pytensors_scalar_operations_can_be_stored() -> None:
    external = Context().external()
    for module in (pytensor.scalar.basic, pytensor.scalar.math):
        for op in filter(lambda value: isinstance(value, ScalarOp), vars(module).values()):
            function = op.__dict__.get("output_types_preference")
            assert function is None or not inspect.isfunction(function) or function in external, op


class Recording(Op):
    """An Op that records its inputs."""

    __props__ = ()

    def __init__(self) -> None:
        self.seen: list[float] = []

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, storage: Any) -> None:
        self.seen.append(float(inputs[0].sum()))
        storage[0][0] = inputs[0]


@pytest.mark.filterwarnings("ignore:Numba will use object mode")
def test_of_two_users_ops_that_are_alike_each_keeps_its_own() -> None:
    def recorded(first: Recording, second: Recording) -> tuple[str, list[float], list[float]]:
        a, b = pt.dvectors("a", "b")
        f = pytensor.function([a, b], [first(a), second(b)])
        f(np.ones(2), np.zeros(2))
        return explain(f).outcome, first.seen, second.seen

    assert recorded(Recording(), Recording()) == ("miss", [2.0], [0.0])
    assert recorded(Recording(), Recording()) == ("hit", [2.0], [0.0])
    one = Recording()
    outcome, seen, _ = recorded(one, one)
    assert (outcome, sorted(seen)) == ("miss", [0.0, 2.0])
