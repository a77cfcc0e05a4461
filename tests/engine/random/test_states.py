"""States of generators as vectors: nothing of a generator is lost, and nothing else is a state."""

import numpy as np
import pytest
from numpy.random import Generator, SeedSequence

from engine.random.states import BIT_GENERATORS, custom_rng_deepcopy, drawn, generator_of, vector_of

SEEDS = SeedSequence([1, 2**70], spawn_key=(3, 2**33))


@pytest.fixture(params=BIT_GENERATORS, ids=lambda kind: kind.__name__)
def generator(request):
    found = Generator(request.param(SEEDS))
    found.random(3, dtype="float32")  # half of a word is left for the next number
    found.spawn(1)
    return found


def _numbers(generator):
    return generator.integers(0, 2**31, 3, dtype="int32").tolist(), generator.normal(size=700).tolist()


def test_a_generator_made_of_a_state_draws_and_spawns_as_the_first(generator):
    copy = generator_of(vector_of(generator))
    assert _numbers(copy) == _numbers(generator)
    assert _numbers(copy.spawn(1)[0]) == _numbers(generator.spawn(1)[0])
    assert np.array_equal(vector_of(copy), vector_of(generator))


@pytest.mark.parametrize("seeds", [None, 2**90, np.array([3, 4], "uint32"), SeedSequence(5, pool_size=8)])
def test_seeds_of_every_kind_are_kept(seeds):
    bits = np.random.RandomState(3)._bit_generator if seeds is None else np.random.PCG64(seeds)
    generator = Generator(bits)
    copy = generator_of(vector_of(generator))
    assert _numbers(copy) == _numbers(generator)
    if seeds is None:
        assert copy.bit_generator.seed_seq is None
    else:
        assert _numbers(copy.spawn(1)[0]) == _numbers(generator.spawn(1)[0])


def test_a_copy_shares_nothing_with_the_first(generator):
    before = vector_of(generator)
    _numbers(custom_rng_deepcopy(generator))
    custom_rng_deepcopy(generator).spawn(3)
    assert np.array_equal(vector_of(generator), before)


def test_a_draw_gives_the_state_behind_it_and_leaves_the_first(generator):
    vector = vector_of(generator)
    before = vector.copy()
    following, numbers = drawn(vector, _numbers)
    assert np.array_equal(vector, before)
    assert numbers == _numbers(generator)
    assert np.array_equal(following, vector_of(generator))


def test_a_draw_that_fails_changes_no_later_one(generator):
    def fail(rng):
        rng.normal(size=5)
        raise ValueError("negative")

    with pytest.raises(ValueError, match="negative"):
        drawn(vector_of(generator), fail)
    assert drawn(vector_of(generator), _numbers)[1] == _numbers(generator)


def test_a_draw_within_a_draw_has_a_generator_of_its_own(generator):
    vector = vector_of(generator)

    def nested(rng):
        inner = drawn(vector, _numbers)[1]
        return inner == _numbers(rng)

    assert drawn(vector, nested)[1]


@pytest.mark.parametrize(
    "array",
    [np.zeros(0, "uint64"), np.zeros(9, "uint64"), np.zeros((2, 9), "uint64"), np.ones(9), np.array(3)],
)
def test_another_array_is_no_state(array):
    for read in (generator_of, lambda vector: drawn(vector, _numbers)):
        with pytest.raises(TypeError, match="as a generator of random numbers"):
            read(array)


def test_a_part_of_a_state_is_none(generator):
    with pytest.raises(TypeError, match="as a generator of random numbers"):
        generator_of(vector_of(generator)[:6])


def test_a_bit_generator_of_another_class_is_refused():
    class Own(np.random.PCG64):
        pass

    with pytest.raises(TypeError, match=r"Own on a SeedSequence; use MT19937"):
        vector_of(Generator(Own(1)))
