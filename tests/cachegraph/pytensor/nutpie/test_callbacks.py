"""What nutpie's functions of C are described by."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import nutpie.compile_pymc
import pytensor
import pytest

from cachegraph.pytensor.nutpie import callbacks


def test_shared_arrays_without_a_plain_type_have_no_description() -> None:
    for array in (np.array(["a"]), np.zeros(2, dtype=">f8"), np.zeros((2, 3)).T, np.zeros(2, dtype="M8[s]")):
        with pytest.raises(callbacks.Undescribed):
            callbacks._stand_in(array)


def test_a_layout_has_no_names_of_keys_and_every_place() -> None:
    make = nutpie.compile_pymc.make_user_data
    variables = pytensor.shared(np.ones((2, 3))), pytensor.shared(np.array(2, dtype="int8"))

    def layout(order: tuple[Any, ...]) -> Any:
        keys = {variable: os.urandom(8).hex() for variable in order}
        data = {key: np.array(variable.get_value()) for variable, key in keys.items()}
        return callbacks._described_data(make(keys, data).dtype, list(data), data)

    assert layout(variables) == layout(variables)
    assert layout(variables) != layout(variables[::-1])


def test_a_stand_in_has_the_type_that_numba_sees_and_none_of_the_data() -> None:
    import numba

    for array in (np.ones(200_000), np.ones((3, 0)), np.array(7, dtype="int8"), np.ones((2, 3), dtype=bool)):
        array.flags.writeable = False
        found = callbacks._stand_in(array)
        assert numba.typeof(found) == numba.typeof(array)
        assert found.size == 1
        assert not found.any()
