"""The stored form of programs: what is in it comes back bit for bit, and anything else is refused."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
import pytest

from engine.pytensor.stored_program import _packed, _unpacked


def _read(value: object) -> tuple[Any, list[Any]]:
    """Return what comes back of a value, and the arrays that are not in the JSON."""
    arrays: list[Any] = []
    text = json.dumps(value, default=partial(_packed, arrays))
    return json.loads(text, object_hook=partial(_unpacked, arrays)), arrays


@pytest.mark.parametrize(
    "array",
    [
        np.array([0.0, -0.0, np.inf, -np.inf, np.nan]),
        np.array([0x7FF8000000000001, 0xFFF0000000000001], "u8").view("f8"),
        np.array(-0.0),
        np.zeros((0, 3), "f4"),
        np.arange(6, dtype=">i2").reshape(2, 3),
        np.array([[True, False]]),
        np.array([2**64 - 1], "u8"),
        np.array([1 + 2j, complex(-0.0, np.nan)], "c8"),
        np.array([1.5], np.longdouble),
        np.array([1.5], np.float16),
    ],
)
def test_a_small_array_comes_back_bit_for_bit(array: np.ndarray[Any, Any]) -> None:
    (found,), others = _read([array])
    assert not others
    assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert found.flags.writeable
    assert found.flags.aligned


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(513),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(10.0)[::2],
        np.ma.masked_array([1.0, 2.0], [True, False]),
        np.array(["a"]),
        np.array([1], "M8[s]"),
    ],
)
def test_other_arrays_are_kept_as_they_are(array: np.ndarray[Any, Any]) -> None:
    found, others = _read([array, 1, array])
    assert found[0] is array
    assert found[2] is others[1] is array


def test_bytes_names_and_numbers_come_back() -> None:
    names = ["x", "", "\ud800", "a\nb", 'quo"te', None]
    assert _read([b"", bytes(range(256)), names, np.int64(3), 2**70]) == (
        [b"", bytes(range(256)), names, 3, 2**70],
        [],
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"numbers": "00", "dtype": "O", "shape": [1]}',
        '{"numbers": "0000000000000000", "dtype": "O", "shape": [1]}',
        '{"numbers": "00", "dtype": "f8", "shape": [1]}',
        '{"numbers": "0000000000000000", "dtype": "f8", "shape": [2]}',
        '{"numbers": "0000000000000000", "dtype": "f8,f8", "shape": [1]}',
        '{"numbers": "zz", "dtype": "f8", "shape": [1]}',
        '{"array": 0}',
        '{"array": "x"}',
        '{"bytes": 3}',
        "{}",
        "[" * 100_000,
    ],
)
def test_what_was_never_written_is_refused(text: str) -> None:
    with pytest.raises((ValueError, TypeError, LookupError, RecursionError)):
        json.loads(text, object_hook=partial(_unpacked, ()))


def test_an_object_without_a_form_is_refused() -> None:
    with pytest.raises(TypeError):
        _read([object()])
