"""Numbers of constants are shown as numpy reads them."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from cachegraph.graph_difference import elements

NUMBERS = (
    "bool float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 complex64 complex128"
)


@pytest.mark.parametrize("dtype", NUMBERS.split())
def test_elements_are_those_of_the_array(dtype: str) -> None:
    array = np.array([0, 1, 0.1, 200, 3]).astype(dtype)
    listed = array.tolist()
    assert elements(array[2:3].tobytes(), dtype) == str(listed[2])
    assert elements(array[:4].tobytes(), dtype) == f"[{', '.join(map(str, listed[:4]))}]"
    assert elements(array.tobytes(), dtype) == f"[{', '.join(map(str, listed[:4]))}, ... 5 in all]"
    assert elements(b"", dtype) == "[]"


@pytest.mark.parametrize("dtype", ["float64", "complex128", "no dtype"])
def test_bytes_of_no_array_are_refused(dtype: str) -> None:
    with pytest.raises((TypeError, ValueError, struct.error)):
        elements(b"123", dtype)
