"""States of numpy's generators as vectors of uint64: what programs hold, and what keys describe.

    vector := word(tag) state* word(length of seeds in bytes) seeds, padded with zero bytes
    state  := MT19937: 312 words of key, then word(pos)
              PCG64, PCG64DXSM: the low and high words of state and of inc, has_uint32, uinteger
              Philox: 4 words of counter, 2 of key, 4 of buffer, buffer_pos, has_uint32, uinteger
              SFC64: 4 words of state, has_uint32, uinteger
    seeds  := JSON of [entropy, spawn_key, pool_size, n_children_spawned], the generator's SeedSequence, or of
              null if it has none, as the bit generator of a RandomState

The tag is TAG plus the number of the bit generator in BIT_GENERATORS.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import MT19937, PCG64, PCG64DXSM, SFC64, Generator, Philox, SeedSequence

Vector = np.ndarray[Any, Any]

TAG = 0x52_4E_47_53_54_01_00
BIT_GENERATORS = (MT19937, PCG64, PCG64DXSM, Philox, SFC64)
_WORDS = {MT19937: 313, PCG64: 6, PCG64DXSM: 6, Philox: 13, SFC64: 6}
_WORD = 2**64
_BUFFERED = ("has_uint32", "uinteger")


def vector_of(generator: Generator) -> Vector:
    """Return the state of `generator` as a vector.

    Refuses (TypeError) bit generators and sequences of seeds that are not numpy's own.
    """
    bits = generator.bit_generator
    kind, seeds = type(bits), bits.seed_seq
    if kind not in BIT_GENERATORS or not (seeds is None or type(seeds) is SeedSequence):
        raise TypeError(
            f"Using {generator}: its bit generator is a {kind.__module__}.{kind.__name__} on a "
            f"{type(seeds).__name__}; use {', '.join(each.__name__ for each in BIT_GENERATORS)} of "
            "numpy.random on a SeedSequence"
        )
    origin = json.dumps(None if seeds is None else _described(seeds)).encode()
    words = [TAG + BIT_GENERATORS.index(kind), *_state_words(kind, bits.state), len(origin)]
    padded = origin + bytes(-len(origin) % 8)
    return np.array([*words, *np.frombuffer(padded, "<u8").tolist()], "uint64")


def generator_of(vector: Vector) -> Generator:
    """Return a new generator in the state `vector`; refuses (TypeError) a vector that is no state."""
    words = vector.tolist()
    kind = _kind(vector, words)
    end = 1 + _WORDS[kind]
    origin = vector[end + 1 :].astype("<u8").tobytes()[: words[end]]
    state = {"bit_generator": kind.__name__, **_state(kind, words[1:end])}
    described = json.loads(origin)
    if described is None:
        bits = kind(0)
        bits.__setstate__((state, None))
    else:
        bits = kind(_seeds(*described))
        bits.state = state
    return Generator(bits)


_spare: deque[Any] = deque(maxlen=64)


def drawn(vector: Vector, draw: Callable[[Generator], Any]) -> tuple[Vector, Any]:
    """Return the state behind `vector` after `draw`, which gets a generator in that state, and what it
    returns.

    `draw` must not keep the generator, nor spawn others from it: the next draw uses it, too. Refuses
    (TypeError) a vector that is no state.
    """
    words = vector.tolist()
    kind = _kind(vector, words)
    end = 1 + _WORDS[kind]
    try:
        generator = _spare.pop()
    except IndexError:
        generator = Generator(kind(0))
    bits = generator.bit_generator
    if type(bits) is not kind:
        generator = Generator(kind(0))
        bits = generator.bit_generator
    bits.state = {"bit_generator": kind.__name__, **_state(kind, words[1:end])}
    result = draw(generator)
    following = vector.copy()
    following[1:end] = _state_words(kind, bits.state)
    _spare.append(generator)
    return following, result


def custom_rng_deepcopy(generator: Generator) -> Generator:
    """Return a generator in the state of `generator` that shares nothing with it."""
    return generator_of(vector_of(generator))


def _kind(vector: Vector, words: Any) -> Any:
    """Return the class of the bit generator whose state `vector`, of these `words`, is."""
    is_words = vector.dtype == "uint64" and vector.ndim == 1 and len(words) > 0
    number = words[0] - TAG if is_words else -1
    if not 0 <= number < len(BIT_GENERATORS) or len(words) <= 1 + _WORDS[BIT_GENERATORS[number]]:
        raise TypeError(
            f"Using an array of {vector.dtype} with shape {vector.shape} as a generator of random numbers: "
            "give a numpy.random.Generator"
        )
    return BIT_GENERATORS[number]


def _described(seeds: SeedSequence) -> list[Any]:
    entropy: Any = seeds.entropy
    if entropy is not None:
        entropy = int(entropy) if np.ndim(entropy) == 0 else [int(item) for item in entropy]
    spawn_key = [int(item) for item in seeds.spawn_key]
    return [entropy, spawn_key, int(seeds.pool_size), int(seeds.n_children_spawned)]


def _seeds(entropy: Any, spawn_key: list[int], pool_size: int, spawned: int) -> SeedSequence:
    return SeedSequence(entropy, spawn_key=tuple(spawn_key), pool_size=pool_size, n_children_spawned=spawned)


def _state_words(kind: type, state: Any) -> list[int]:
    inner = state["state"]
    if kind is MT19937:
        key = np.ascontiguousarray(inner["key"], "<u4")
        return [*key.view("<u8").tolist(), int(inner["pos"])]
    buffered = [int(state[name]) for name in _BUFFERED]
    if kind is Philox:
        arrays = (inner["counter"], inner["key"], state["buffer"])
        return [
            *(word for array in arrays for word in array.tolist()),
            int(state["buffer_pos"]),
            *buffered,
        ]
    if kind is SFC64:
        return [*inner["state"].tolist(), *buffered]
    large = (inner["state"], inner["inc"])
    return [*(word for number in large for word in (number % _WORD, number // _WORD)), *buffered]


def _state(kind: type, words: list[int]) -> dict[str, Any]:
    if kind is MT19937:
        key = np.array(words[:-1], "<u8").view("<u4").astype("uint32")
        return {"state": {"key": key, "pos": words[-1]}}
    buffered = dict(zip(_BUFFERED, words[-2:], strict=True))
    if kind is Philox:
        counter, key, buffer = (np.array(words[a:b], "uint64") for a, b in ((0, 4), (4, 6), (6, 10)))
        return {
            "state": {"counter": counter, "key": key},
            "buffer": buffer,
            "buffer_pos": words[10],
            **buffered,
        }
    if kind is SFC64:
        return {"state": {"state": np.array(words[:4], "uint64")}, **buffered}
    state, inc = words[0] + words[1] * _WORD, words[2] + words[3] * _WORD
    return {"state": {"state": state, "inc": inc}, **buffered}
