"""Functions pickled and copied: they run without being rewritten or compiled, from the cache or from what they carry."""

from __future__ import annotations

import copy
import pickle
import threading

import cloudpickle
import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import function, shared
from engine.compiling import build as building
from engine.compiling import inner_graphs, lookup
from engine.compiling import pickled_function as pickled
from engine.errors import ArgumentError, FunctionLoadError
from engine.runtime import load
from engine.tensor.optimize import minimize

pytestmark = pytest.mark.usefixtures("kernels_once")
OFF = {"CACHEGRAPH_MODE": "off"}
LOADERS: list[load.Loader] = []
"""Of which none goes away: a function may be left that runs what it linked."""


@pytest.fixture
def never_built(monkeypatch):
    """A function that, once called, forbids rewriting and compiling."""

    def forbid():
        def build(*_):
            raise AssertionError("a pickled function is never built")

        monkeypatch.setattr(building, "build_program", build)
        monkeypatch.setattr(building, "rewritten", build)

    return forbid


@pytest.fixture
def x():
    return pt.vector("x")


@pytest.fixture
def counting(x):
    """A function with data and a shared variable that it updates, and the variable."""
    total = shared(np.zeros(3), name="total")
    data = pt.constant(np.arange(120.0).reshape(40, 3))
    outputs = [pt.exp(x) + total, pt.sum(data * x)]
    return function([x], outputs, updates={total: total + x}, name="counting"), total


def elsewhere(monkeypatch, **environment):
    """From now on the cache is another one."""
    for name, value in environment.items():
        monkeypatch.setenv(name, str(value))


def changed(pickled, old, new):
    assert pickled.count(old) == 1
    return pickle.loads(pickled.replace(old, new))


# What comes out of a pickle


def test_a_pickled_function_is_a_hit_where_the_cache_has_it(counting, never_built):
    f, _ = counting
    content = pickle.dumps(f)
    never_built()
    g = pickle.loads(content)
    np.testing.assert_array_equal(g(np.ones(3))[0], f(np.ones(3))[0])
    info = g.cache_info
    assert (info.outcome, info.reason, info.key) == ("hit", "", f.cache_info.key)
    assert info.found == {"function": [1, 0], "kernel": [sum(f.cache_info.found["kernel"]), 0]}
    assert (info.rewrites, info.compilations) == (0, 0)
    assert info.seconds_saved > 0


@pytest.mark.parametrize("how", ["empty", "off", "unwritable", "readonly", "error"])
def test_it_runs_from_what_it_carries_where_the_cache_has_nothing(
    counting, never_built, how, monkeypatch, tmp_path
):
    f, _ = counting
    content = pickle.dumps(f)
    never_built()
    (tmp_path / "a file").touch()
    elsewhere(
        monkeypatch,
        **{
            "empty": {"CACHEGRAPH_DIR": tmp_path / "empty"},
            "off": OFF,
            "unwritable": {"CACHEGRAPH_DIR": tmp_path / "a file"},
            "readonly": {"CACHEGRAPH_DIR": tmp_path / "none", "CACHEGRAPH_MODE": "readonly"},
            "error": {"CACHEGRAPH_DIR": tmp_path / "none", "CACHEGRAPH_ON_MISS": "error"},
        }[how],
    )
    g = pickle.loads(content)
    for found, due in zip(g(np.ones(3)), f(np.ones(3)), strict=True):
        np.testing.assert_array_equal(found, due)
    info = g.cache_info
    assert (info.outcome, info.rewrites, info.compilations) == ("carried", 0, 0)
    assert info.reason == ("disabled" if how == "off" else "never-seen")
    assert info.found == {"function": [0, 1], "kernel": [0, sum(f.cache_info.found["kernel"])]}


def test_a_carried_function_can_be_pickled_on_used_or_not(counting, monkeypatch):
    f, _ = counting
    elsewhere(monkeypatch, **OFF)
    unused = pickle.loads(pickle.dumps(f))
    assert repr(unused) == "<Function counting: not loaded yet>"
    again = pickle.loads(pickle.dumps(unused))
    assert again(np.ones(3))[1] == f(np.ones(3))[1]
    assert repr(again) == "<Function counting: carried>"
    assert pickle.loads(pickle.dumps(again))(np.ones(3))[1] == f(np.ones(3))[1]


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_pickles_of_every_kind_hold_it(counting, dumps, protocol):
    f, _ = counting
    assert pickle.loads(dumps(f, protocol))(np.ones(3))[1] == f(np.ones(3))[1]


def test_one_and_no_output_come_as_before(x):
    assert pickle.loads(pickle.dumps(function([x], x * 2)))(np.ones(2)).tolist() == [2, 2]
    assert pickle.loads(pickle.dumps(function([x], [x * 2])))(np.ones(2))[0].tolist() == [2, 2]
    assert pickle.loads(pickle.dumps(function([], None)))() == []


def test_arguments_are_given_and_refused_as_before(counting):
    g = pickle.loads(pickle.dumps(counting[0]))
    assert g(x=[1, 2, 3])[1] == g(np.array([1.0, 2.0, 3.0]))[1]
    with pytest.raises(ArgumentError, match=r"Calling counting: argument 0 \('x'\)"):
        g(np.ones((2, 2)))
    with pytest.raises(TypeError, match="no argument y"):
        g(y=1)
    with pytest.raises(ValueError, match="counting"):
        g(np.ones(4))


def test_an_input_that_something_computes_is_carried_without_what_computes_it(x):
    y = pt.exp(x)
    f = function([y], y * 2)
    assert pickle.loads(pickle.dumps(f))(np.ones(2)).tolist() == [2, 2]


def test_threads_may_use_it_first_at_once(counting, monkeypatch):
    f, _ = counting
    elsewhere(monkeypatch, **OFF)
    due = f(np.ones(3))[1]
    g = pickle.loads(pickle.dumps(f))
    found = []
    threads = [threading.Thread(target=lambda: found.append(g(np.ones(3))[1])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [due] * 8


# Shared variables


def test_it_has_values_of_its_own_and_goes_on_updating_them(counting):
    f, total = counting
    f(np.ones(3))
    g = pickle.loads(pickle.dumps(f))
    first, second = g(np.ones(3))[0], g(np.ones(3))[0]
    np.testing.assert_allclose(second - first, 1)
    assert total.get_value().tolist() == [1, 1, 1]


def test_functions_and_variables_pickled_together_still_share(counting):
    f, total = counting
    look = function([], total * 10)
    g, seen, variable = pickle.loads(pickle.dumps((f, look, total)))
    g(np.ones(3))
    assert seen().tolist() == [10, 10, 10]
    variable.set_value(np.full(3, 5.0))
    assert seen().tolist() == [50, 50, 50]
    assert total.get_value().tolist() == [0, 0, 0]


def test_a_value_that_comes_mapped_for_reading_only_can_be_updated(counting):
    f, _ = counting
    buffers: list[pickle.PickleBuffer] = []
    content = pickle.dumps(f, protocol=5, buffer_callback=buffers.append)
    g = pickle.loads(content, buffers=[bytes(buffer) for buffer in buffers])
    g(np.ones(3))
    np.testing.assert_allclose(g(np.ones(3))[0], np.exp(1) + 1)


# The optimized graph


def test_the_optimized_graph_is_read_when_it_is_looked_at_and_not_before(counting, never_built, monkeypatch):
    f, _ = counting
    due, content = engine.dprint(f, file="str"), pickle.dumps(f)
    never_built()
    elsewhere(monkeypatch, **OFF)
    read = []
    loads = inner_graphs.pickling.loads
    monkeypatch.setattr(
        inner_graphs.pickling, "loads", lambda *rest, **named: read.append(1) or loads(*rest, **named)
    )
    g = pickle.loads(content)
    g(np.ones(3))
    assert read == []
    assert engine.dprint(g, file="str") == due
    assert read == [1]


def test_an_op_around_a_graph_that_sets_elements_is_not_optimized_again(never_built, monkeypatch):
    x = pt.vector("x")
    op = engine.OpFromGraph([x], [x[[0, 1, 2]].set(1) * 2 * 3])
    f = function([x], op(x) + 1)
    due, content = engine.dprint(f, file="str"), pickle.dumps(f)
    never_built()
    for environment in ({}, OFF):
        elsewhere(monkeypatch, **environment)
        g = pickle.loads(content)
        assert engine.dprint(g, file="str") == due
        np.testing.assert_array_equal(g(np.zeros(4)), [7, 7, 7, 1])


def test_a_function_whose_optimized_graph_was_lost_carries_one_made_again(counting, monkeypatch):
    f, _ = counting
    due = engine.dprint(f, file="str")
    again = function([f.maker.fgraph.inputs[0]], pt.exp(f.maker.fgraph.inputs[0]))
    np.testing.assert_allclose(again(np.ones(1)), np.exp(1), rtol=1e-15)
    warm = pickle.loads(pickle.dumps(f))
    assert warm.cache_info.outcome == "hit"
    monkeypatch.setattr("cachegraph.cache.Cache.read_blob", lambda *_: None)
    assert engine.dprint(pickle.loads(pickle.dumps(warm)), file="str") == due


# Functions with others in them


def test_functions_that_a_search_calls_are_carried_too(never_built, monkeypatch):
    x, shift = pt.vector("x", shape=(2,)), pt.scalar("shift")
    solution, success = minimize(pt.sum(pt.sqr(x - shift) + x**4), x)
    f = function([x, shift], [solution, success])
    content = pickle.dumps(f)
    never_built()
    due = f(np.ones(2), 2.0)[0]
    for environment, found in (({}, [2, 0]), (OFF, [0, 2])):
        elsewhere(monkeypatch, **environment)
        g = pickle.loads(content)
        np.testing.assert_array_equal(g(np.ones(2), 2.0)[0], due)
        assert g.cache_info.found["function"] == found
        assert (g.cache_info.rewrites, g.cache_info.compilations) == (0, 0)


def test_loops_with_gradients_and_layers_are_carried_too(never_built, monkeypatch):
    state, weights = pt.vector("state"), pt.matrix("weights")
    layer = engine.OpFromGraph([state, weights], [pt.tanh(pt.dot(weights, state)) + 0.5 * state])
    states, _ = engine.scan(layer, outputs_info=[state], non_sequences=[weights], n_steps=5)
    cost = pt.sum(pt.sqr(states[-1]))
    f = function([state, weights], [cost, *engine.grad(cost, [state, weights])])
    values = [np.linspace(-1, 1, 3), np.eye(3) / 2]
    content, due, shown = pickle.dumps(f), f(*values), engine.dprint(f, file="str")
    never_built()
    elsewhere(monkeypatch, **OFF)
    g = pickle.loads(content)
    for found, expected in zip(g(*values), due, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert g.cache_info.outcome == "carried"
    assert engine.dprint(g, file="str") == shown


# What does not fit


def test_code_of_another_toolchain_is_refused_and_said_which(counting, monkeypatch):
    g = pickle.loads(pickle.dumps(counting[0]))
    here = pickled.toolchain()
    monkeypatch.setattr(pickled, "toolchain", lambda: {**here, "numpy": "1.0"})
    with pytest.raises(
        FunctionLoadError, match=rf"counting: .* numpy {here['numpy']} \(here 1.0\)"
    ) as raised:
        g(np.ones(3))
    assert raised.value.function == "counting"
    monkeypatch.undo()


def test_code_of_another_engine_is_refused(counting, monkeypatch):
    g = pickle.loads(pickle.dumps(counting[0]))
    monkeypatch.setattr(pickled, "engine_code", lambda: b"\0")
    with pytest.raises(FunctionLoadError, match="the engine's source"):
        g(np.ones(3))


@pytest.fixture
def nothing_linked(monkeypatch):
    """From each call on it is as in a process that has linked nothing."""

    def forget():
        LOADERS.append(load.Loader())
        monkeypatch.setattr("engine.compiling.load.process_loader", lambda: LOADERS[-1])

    return forget


def test_code_for_a_cpu_level_that_this_machine_has_not_is_refused(counting, monkeypatch, nothing_linked):
    elsewhere(monkeypatch, **OFF)
    g = pickle.loads(pickle.dumps(counting[0]))
    nothing_linked()
    monkeypatch.setattr(load, "runnable_levels", lambda: ("another",))
    with pytest.raises(FunctionLoadError, match=r"loading k_.*this process runs another"):
        g(np.ones(3))


def test_damage_is_refused_with_a_reason_and_healed_by_the_cache(counting, monkeypatch, nothing_linked):
    f, _ = counting
    content = pickle.dumps(f)
    execution = f._loaded().runner
    program = pickled.pack_program(execution.program)
    kernels = [kernel for _, kernel, _ in pickled.linked_entries(execution)]
    for part in (program, *kernels):
        broken = bytes(part[:-9]) + bytes([part[-9] ^ 1]) + bytes(part[-8:])
        nothing_linked()
        assert changed(content, part, broken)(np.ones(3))[1] == f(np.ones(3))[1]
        nothing_linked()
        with monkeypatch.context() as patch:
            elsewhere(patch, **OFF)
            with pytest.raises(FunctionLoadError, match="damaged"):
                changed(content, part, broken)(np.ones(3))


def test_a_damaged_optimized_graph_leaves_a_function_that_runs(counting, monkeypatch):
    f, _ = counting
    elsewhere(monkeypatch, **OFF)
    g = pickle.loads(pickle.dumps(f))
    blobs = g._pickled.carried._blobs
    blobs.update({name: content + b"!" for name, content in blobs.items()})
    assert g(np.ones(3))[1] == f(np.ones(3))[1]
    with pytest.raises(FunctionLoadError, match="optimized graph"):
        g.maker.fgraph  # noqa: B018


def test_entries_of_the_cache_that_do_not_load_are_not_needed(counting, monkeypatch):
    f, _ = counting
    g = pickle.loads(pickle.dumps(f))
    monkeypatch.setattr("cachegraph.cache.Cache.lookup", lambda *_: pickled.Hit(b"nothing", {}, {}))
    assert g(np.ones(3))[1] == f(np.ones(3))[1]
    assert (g.cache_info.outcome, g.cache_info.reason) == ("carried", "unreadable")


# Functions without an entry of their own


def test_a_function_made_without_the_cache_carries_all_it_needs(x, monkeypatch, never_built):
    with monkeypatch.context() as patch:
        elsewhere(patch, **OFF)
        f = function([x], pt.tanh(x) * 3)
    content = pickle.dumps(f)
    never_built()
    g = pickle.loads(content)
    np.testing.assert_array_equal(g(np.ones(2)), f(np.ones(2)))
    assert engine.dprint(g, file="str") == engine.dprint(f, file="str")


def test_a_function_that_bypassed_the_cache_says_so_wherever_it_is_loaded(x, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(lookup, "request_key", lambda *_: refused_key())
        f = function([x], pt.tanh(x) * 4)
    assert f.cache_info.outcome == "bypass"
    g = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(g(np.ones(2)), f(np.ones(2)))
    assert (g.cache_info.outcome, g.cache_info.reason) == ("carried", f.cache_info.reason)
    assert g.cache_info.key is None


def refused_key():
    raise lookup.Unfingerprintable("something", "do without")


def test_a_function_of_the_numpy_backend_is_carried_as_its_graph(x):
    total = shared(np.zeros(2))
    f = function([x], pt.exp(x) + total, updates={total: total + x}, mode="NUMPY")
    g = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(g(np.ones(2)), f(np.ones(2)))
    np.testing.assert_array_equal(g(np.ones(2)), f(np.ones(2)))
    assert g.cache_info.outcome == "carried"
    assert engine.dprint(g, file="str") == engine.dprint(f, file="str")


# Copies


def test_a_copy_shares_variables_and_has_a_name_of_its_own(counting):
    f, total = counting
    for g in (f.copy(), copy.copy(f), f.copy(name="named")):
        g(np.ones(3))
    assert total.get_value().tolist() == [3, 3, 3]
    assert (g.name, f.copy().name, f.name) == ("named", "counting copy", "counting")
    assert g.cache_info is f.cache_info


def test_a_deep_copy_has_values_of_its_own(counting):
    f, total = counting
    g, variable = copy.deepcopy((f, total))
    g(np.ones(3))
    assert variable.get_value().tolist() == [1, 1, 1]
    assert total.get_value().tolist() == [0, 0, 0]
    assert g.name == f.name


def test_a_copy_without_updates_changes_nothing_pickled_or_not(counting):
    f, total = counting
    g = f.copy(delete_updates=True)
    g(np.ones(3))
    loaded, variable = pickle.loads(pickle.dumps((g, total)))
    loaded(np.ones(3))
    assert variable.get_value().tolist() == total.get_value().tolist() == [0, 0, 0]


def test_a_copy_may_use_other_shared_variables(counting):
    f, total = counting
    other = shared(np.full(3, 7.0))
    g = f.copy(swap={total: other})
    np.testing.assert_allclose(g(np.zeros(3))[0], 8)
    g(np.ones(3))
    assert other.get_value().tolist() == [8, 8, 8]
    assert total.get_value().tolist() == [0, 0, 0]


def test_what_cannot_be_swapped_is_refused(counting):
    f, total = counting
    with pytest.raises(ValueError, match="no shared variable"):
        f.copy(swap={shared(np.ones(3)): total})
    with pytest.raises(TypeError, match="cannot be swapped"):
        f.copy(swap={total: shared(np.ones((3, 3)))})


def test_a_function_that_was_not_used_yet_is_copied_unloaded(counting):
    g = pickle.loads(pickle.dumps(counting[0]))
    copied = copy.deepcopy(g)
    assert repr(copied) == repr(g) == "<Function counting: not loaded yet>"
    assert copied(np.ones(3))[1] == g(np.ones(3))[1]
