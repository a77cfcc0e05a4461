"""numpy's functions for kernels do what the methods of arrays do, with or without numpy's own table."""

import ctypes

import numpy as np
import pytest

from engine.runtime import numpy_functions
from engine.runtime.kernel_interface import ITEM_SIZES
from engine.runtime.numpy_functions import NUMPY_FUNCTIONS, calling_method, numpy_function

POINTER, COUNT = ctypes.c_void_p, ctypes.c_ssize_t
SIGNATURES = {
    "sort": (POINTER, COUNT, POINTER),
    "argsort": (POINTER, POINTER, COUNT, POINTER),
    "argmax": (POINTER, COUNT, POINTER, POINTER),
    "argmin": (POINTER, COUNT, POINTER, POINTER),
}


def function_at(address, method):
    return ctypes.CFUNCTYPE(ctypes.c_int, *SIGNATURES[method])(address)


def check(function, method, dtype, length):
    values = (np.random.default_rng(length).normal(size=length) * 100).astype(dtype)
    if dtype.startswith("float") and length > 20:
        values[11::7] = np.nan
    positions = np.arange(max(length, 1))
    due = values.copy()
    if method == "sort":
        function(values.ctypes.data, length, None)
        np.testing.assert_array_equal(values, np.sort(due))
    elif method == "argsort":
        function(values.ctypes.data, positions.ctypes.data, length, None)
        np.testing.assert_array_equal(values[positions[:length]], np.sort(due))
        assert sorted(positions[:length]) == list(range(length))
    elif length:
        function(values.ctypes.data, length, positions.ctypes.data, None)
        assert positions[0] == getattr(due, method)()


@pytest.mark.parametrize("length", [0, 1, 2, 17, 1000])
@pytest.mark.parametrize("name", sorted(NUMPY_FUNCTIONS))
def test_a_function_does_what_the_method_does(name, length):
    _, method, dtype = name.split("_")
    assert numpy_functions._from_numpy(method, dtype) == numpy_function(name)
    check(function_at(numpy_function(name), method), method, dtype, length)


@pytest.mark.parametrize("length", [0, 1, 2, 17, 1000])
@pytest.mark.parametrize("method", sorted(SIGNATURES))
@pytest.mark.parametrize("dtype", sorted(ITEM_SIZES))
def test_without_numpys_table_the_method_is_called(method, dtype, length, monkeypatch):
    monkeypatch.setattr(numpy_functions, "numpy_table", lambda size: None)
    address = numpy_function.__wrapped__(f"numpy_{method}_{dtype}")
    assert address == ctypes.cast(calling_method(method, dtype), ctypes.c_void_p).value
    check(function_at(address, method), method, dtype, length)
