"""Generators in graphs and functions: a draw changes none, updates advance shared ones, and states are in no key."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.errors import ArgumentError
from engine.graph import FrozenFunctionGraph
from engine.ifelse import ifelse
from engine.random.continuous import NormalRV
from engine.random.op import RandomVariable
from engine.random.shared import RandomGeneratorSharedVariable
from engine.random.type import as_rng, random_generator_type

pytestmark = pytest.mark.usefixtures("kernels_once")
random = pt.random
MODES = ["FAST_RUN", "NUMPY"]


def numbers(seed, calls=1):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=3).tolist() for _ in range(calls)][-1]


def state(rng):
    return rng.bit_generator.state


@pytest.fixture
def shared():
    return random.shared_rng(seed=1, name="rng")


def drawing(rng, updates=True, mode=None):
    next_rng, draws = random.normal(size=3, rng=rng, return_next_rng=True)
    f = engine.function([], draws, updates={rng: next_rng} if updates else None, mode=mode)
    return lambda: f().tolist(), f


# Which generators a call changes


@pytest.mark.parametrize("mode", MODES)
def test_calls_continue_where_the_last_one_ended(shared, mode):
    call, _ = drawing(shared, mode=mode)
    assert [call(), call(), call()] == [numbers(1, calls) for calls in (1, 2, 3)]
    due = np.random.default_rng(1)
    due.normal(size=9)
    assert state(shared.get_value()) == state(due)


@pytest.mark.parametrize("mode", MODES)
def test_without_an_update_every_call_draws_the_same(shared, mode):
    call, _ = drawing(shared, updates=False, mode=mode)
    assert call() == call() == numbers(1)
    assert state(shared.get_value()) == state(np.random.default_rng(1))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("inplace", [False, True])
def test_a_generator_that_the_caller_gave_or_holds_stays_as_it_is(mode, inplace):
    given, lent = np.random.default_rng(1), np.random.default_rng(2)
    rng, borrowed = random.rng("rng"), random.shared_rng(lent, borrow=True)
    op = NormalRV(inplace=inplace)
    next_rng, draws = op(size=3, rng=rng, return_next_rng=True)
    next_borrowed, others = op(size=3, rng=borrowed, return_next_rng=True)
    again = random.normal(size=3, rng=rng)
    f = engine.function([rng], [draws, others, again, next_rng], updates={borrowed: next_borrowed}, mode=mode)
    for calls in (1, 2):
        found = f(given)
        assert [each.tolist() for each in found[:3]] == [numbers(1), numbers(2, calls), numbers(1)]
        assert state(given) == state(np.random.default_rng(1))
    assert state(lent) == state(np.random.default_rng(2))
    assert found[3].normal(size=3).tolist() == numbers(1, 2)


def test_a_value_that_is_borrowed_is_the_one_that_functions_read(shared):
    call, _ = drawing(shared)
    call()
    borrowed = shared.get_value(borrow=True)
    assert borrowed is shared.get_value(borrow=True)
    borrowed.normal(size=3)
    assert call() == numbers(1, 3)
    own = shared.get_value()
    own.normal()
    assert call() == numbers(1, 4)


def test_set_value_takes_a_generator_or_a_seed(shared):
    call, _ = drawing(shared)
    mine = np.random.default_rng(5)
    shared.set_value(mine)
    assert call() == numbers(5)
    assert state(mine) == state(np.random.default_rng(5))
    shared.set_value(seed=6)
    assert call() == numbers(6)
    shared.set_value(np.random.Generator(np.random.MT19937(7)))
    assert call() == np.random.Generator(np.random.MT19937(7)).normal(size=3).tolist()
    for arguments in ((), (mine,)):
        with pytest.raises(ValueError, match="value"):
            shared.set_value(*arguments, **({"seed": 1} if arguments else {}))
    with pytest.raises(TypeError, match=r"Expected numpy.random.Generator, got <class 'int'>"):
        shared.set_value(3)


def test_a_default_update_and_the_stream_of_them(shared):
    next_rng, draws = shared.normal(size=3)
    shared.default_update = next_rng
    f = engine.function([], draws)
    assert [f().tolist(), f().tolist()] == [numbers(1), numbers(1, 2)]
    fixed = engine.function([], draws, no_default_updates=True)
    assert fixed().tolist() == fixed().tolist() == numbers(1, 3)
    with pytest.raises(TypeError, match="must have its type RandomGeneratorType"):
        shared.default_update = draws


def test_a_stream_gives_each_draw_a_generator():
    stream = random.RandomStream(3)
    f = engine.function([], [stream.normal(size=3), stream.uniform(0, 2), stream.choice(5, size=2)])
    seeds = np.random.SeedSequence(3).spawn(3)
    rngs = [np.random.default_rng(seed) for seed in seeds]
    for _ in range(2):
        found = f()
        assert found[0].tolist() == rngs[0].normal(size=3).tolist()
        assert float(found[1]) == rngs[1].uniform(0, 2)
        assert found[2].tolist() == rngs[2].integers(0, 5, 2).tolist()
    stream.seed(3)
    again = np.random.SeedSequence(3).spawn(3)
    assert f()[0].tolist() == np.random.default_rng(again[0]).normal(size=3).tolist()
    assert len(stream.updates()) == 3
    assert not hasattr(stream, "kurtosis")
    with pytest.raises(ValueError, match="`rng` option"):
        stream.normal(rng=stream.updates()[0][0])


# Functions that are copied, pickled, and share


def test_functions_that_share_a_generator_continue_each_other(shared):
    first, second = drawing(shared)[0], drawing(shared)[0]
    assert [first(), second(), first()] == [numbers(1, calls) for calls in (1, 2, 3)]


def test_a_pickled_function_has_the_state_of_its_generator(shared):
    call, f = drawing(shared)
    call()
    loaded, deep = pickle.loads(pickle.dumps(f)), copy.deepcopy(f)
    assert loaded().tolist() == deep().tolist() == call() == numbers(1, 2)
    assert loaded().tolist() == deep().tolist() == numbers(1, 3)


def test_copies_share_and_swap_generators(shared):
    call, f = drawing(shared)
    other = random.shared_rng(seed=2)
    swapped, fixed = f.copy(swap={shared: other}), f.copy(delete_updates=True)
    assert [swapped().tolist(), swapped().tolist()] == [numbers(2), numbers(2, 2)]
    assert fixed().tolist() == fixed().tolist() == call() == numbers(1)
    with pytest.raises(TypeError, match="cannot be swapped"):
        f.copy(swap={shared: engine.shared(1.0)})


def test_generators_are_returned_given_and_replaced(shared):
    rng = random.rng("rng")
    next_rng, draws = rng.normal(size=3)
    f = engine.function([engine.In(rng, value=np.random.default_rng(4))], {"next": next_rng, "draws": draws})
    found = f()
    assert found["draws"].tolist() == numbers(4)
    assert f(found["next"])["draws"].tolist() == numbers(4, 2)
    g = engine.function([], draws, givens={rng: shared})
    assert g().tolist() == numbers(1)
    with pytest.raises(ArgumentError, match="must be RandomGeneratorType, but 3"):
        f(3)
    with pytest.raises(TypeError, match="as a generator of random numbers"):
        f(np.zeros(9, "uint64"))


def test_a_graph_within_an_op_draws(shared):
    rng, mu = random.rng(), pt.scalar()
    next_rng, draws = random.normal(mu, rng=rng, return_next_rng=True)
    op = engine.OpFromGraph([rng, mu], [next_rng, 2 * draws])
    following, twice = op(shared, pt.constant(3.0))
    f = engine.function([], twice, updates={shared: following})
    due = np.random.default_rng(1)
    assert [float(f()), float(f())] == [2 * due.normal(3.0), 2 * due.normal(3.0)]


def test_only_the_branch_that_is_chosen_draws(shared):
    x, other = pt.scalar("x"), random.shared_rng(seed=2)
    next_rng, draws = random.normal(scale=x, size=3, rng=shared, return_next_rng=True)
    chosen, following = ifelse(x > 0, (draws, next_rng), (np.zeros(3), shared))
    f = engine.function([x], chosen, updates={shared: following})
    assert [f(value).tolist() for value in (1, -1, 1)] == [numbers(1), [0.0] * 3, numbers(1, 2)]
    g = engine.function([x], random.normal(size=3, rng=ifelse(x > 0, shared, other)))
    assert [g(value).tolist() for value in (1, -1)] == [numbers(1, 3), numbers(2)]
    with pytest.raises(TypeError, match="must have one type"):
        ifelse(x > 0, shared, x)


# What is one computation, and what keys say


def test_equal_draws_of_one_generator_are_one_computation():
    one, other = random.shared_rng(seed=1), random.shared_rng(seed=1)
    draws = [random.normal(size=2, rng=rng) for rng in (one, one, other)]
    f = engine.function([], draws)
    assert sum(isinstance(node.op, RandomVariable) for node in f.maker.fgraph.apply_nodes) == 2
    assert np.array_equal(*f()[:2])


def test_constant_generators_are_described_by_their_states():
    def made(generator):
        f = engine.function([], random.normal(size=3, rng=random_generator_type.make_constant(generator)))
        return f.cache_info.key, f().tolist(), f().tolist()

    mine = np.random.default_rng(1)
    constant = random_generator_type.make_constant(mine)
    mine.normal()
    assert state(constant.value) == state(np.random.default_rng(1))
    first, again, other, bits = map(
        made,
        [
            np.random.default_rng(1),
            np.random.default_rng(1),
            mine,
            np.random.Generator(np.random.PCG64DXSM(1)),
        ],
    )
    assert first == again
    assert first[1] == first[2] == numbers(1)
    assert len({first[0], other[0], bits[0]}) == 3
    assert other[1] != first[1] != bits[1]


_SCRIPT = """
import sys, numpy as np, engine, engine.tensor as pt
rng = pt.random.shared_rng(np.random.Generator(getattr(np.random, sys.argv[2])(int(sys.argv[1]))))
next_rng, draws = pt.random.normal(size=3, rng=rng, return_next_rng=True)
f = engine.function([], draws, updates={rng: next_rng})
f()
print(f.cache_info.outcome, f().tolist())
"""


def test_another_process_hits_with_its_own_generator(cache_directory, monkeypatch):
    monkeypatch.setenv("CACHEGRAPH_DIR", str(cache_directory))  # an empty one

    def run(seed: int, bits: str) -> str:
        command = [sys.executable, "-c", _SCRIPT, str(seed), bits]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert run(1, "PCG64") == f"miss {numbers(1, 2)}"
    assert run(2, "PCG64") == f"hit {numbers(2, 2)}"
    due = np.random.Generator(np.random.MT19937(3)).normal(size=(2, 3))[1].tolist()
    assert run(3, "MT19937") == f"hit {due}"


# Variables


def test_methods_of_a_generator_return_the_next_one_and_warn_of_reuse():
    rng = random.rng("rng")
    next_rng, draws = rng.normal(size=3)
    third, more = next_rng.integers(5, size=3)
    assert third.type == random_generator_type
    found = engine.function([rng], [draws, more])(np.random.default_rng(1))
    due = np.random.default_rng(1)
    assert found[0].tolist() == due.normal(size=3).tolist()
    assert found[1].tolist() == due.integers(5, size=3).tolist()
    with pytest.warns(UserWarning, match="Drawing from rng: it has been drawn from before"):
        rng.uniform()
    assert "normal" in dir(rng)
    assert state(next_rng.eval({rng: np.random.default_rng(1)})) != state(np.random.default_rng(1))
    frozen = FrozenFunctionGraph.from_io([rng], [draws]).inputs[0]
    assert frozen.normal()[1].type == random.normal(rng=frozen).type
    with pytest.raises(AttributeError, match="kurtosis"):
        _ = rng.kurtosis


def test_shared_makes_a_variable_of_a_generator():
    mine = np.random.default_rng(1)
    made = engine.shared(mine, name="mine")
    assert isinstance(made, RandomGeneratorSharedVariable)
    assert (made.name, made.get_value(borrow=True) is mine) == ("mine", False)
    assert engine.shared(mine, borrow=True).get_value(borrow=True) is mine
    with pytest.raises(TypeError, match=r"Expected numpy\.random\.Generator"):
        engine.shared(np.random.RandomState(1))
    with pytest.raises(ValueError, match="Cannot specify both"):
        random.shared_rng(mine, seed=1)


def test_the_type_tells_generators_and_states_from_other_values():
    kind, mine = random_generator_type, np.random.default_rng(1)
    assert kind.filter(mine) is mine
    assert kind.values_eq(kind.filter(state(mine)), mine)
    assert kind.values_eq(state(mine), mine)
    assert not kind.values_eq(mine, np.random.default_rng(2))
    assert kind.is_valid_value(mine)
    assert (kind.is_valid_value(state(mine)), kind.is_valid_value(state(mine), strict=False)) == (False, True)
    for wrong in (3, {}, {"bit_generator": "Own"}, {**state(mine), "state": {}}):
        assert not kind.is_valid_value(wrong, strict=False)
    assert kind.may_share_memory(mine, np.random.Generator(mine.bit_generator))
    assert pickle.loads(pickle.dumps(kind)) == kind
    for wrong in (None, mine, pt.scalar()):
        with pytest.raises(TypeError, match="give a variable"):
            as_rng(wrong)
    with pytest.raises(TypeError, match="no tensor variable"):
        pt.as_tensor_variable(random.rng())
