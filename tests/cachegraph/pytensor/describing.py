"""Descriptions of functions for the tests, from what pytensor.function gives its maker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pytensor.compile.mode import get_mode, optdb
from pytensor.compile.rebuild import construct_function_ins_and_outs

from cachegraph.pytensor.describe.key import GraphDescription, describe


def described(
    inputs: list[Any],
    outputs: Any,
    *,
    mode: Any = "NUMBA",
    updates: Any = None,
    givens: Any = None,
    accept_inplace: bool = False,
    large_constants: bool = False,
) -> GraphDescription:
    given, computed = construct_function_ins_and_outs(inputs, outputs, updates=updates, givens=givens)
    return describe(given, computed, get_mode(mode), accept_inplace, large_constants)


def key_of(inputs: list[Any], outputs: Any, **options: Any) -> str:
    return described(inputs, outputs, **options).key.hex


@contextmanager
def registered_rewrite(name: str, rewriter: Any) -> Iterator[None]:
    """Have `rewriter` registered for a while, under no tag but "fast_run" and those that PyTensor adds."""
    optdb.register(name, rewriter, "fast_run", position=1.4)
    try:
        yield
    finally:
        for held in optdb.__db__.values():
            held.discard(rewriter)
        optdb._names.remove(name)
        del optdb.__db__[name], optdb.__position__[name]
