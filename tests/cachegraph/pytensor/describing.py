"""Descriptions of functions for the tests, from what pytensor.function gives its maker."""

from __future__ import annotations

from typing import Any

from pytensor.compile.mode import get_mode
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
