"""Arrays that hold what arithmetic gets wrong: infinities, NaN, signed zeros, subnormals, the ends of the integers."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

SIGNED = ("int64", "int32", "int16", "int8")
UNSIGNED = ("uint64", "uint32", "uint16", "uint8")
DTYPES = ("float64", "float32", *SIGNED, *UNSIGNED, "bool")

_FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -2.5,
    3.0,
    20.0,
    -20.0,
    40.0,
    -745.0,
    1e-300,
    1e-40,
    1e30,
    np.inf,
    -np.inf,
    np.nan,
]


def special(dtype: str) -> np.ndarray:
    """The special values of `dtype`, once each."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype.startswith("float"):
        with np.errstate(all="ignore"):
            return np.array(_FLOATS, dtype)
    bounds = np.iinfo(dtype)
    if dtype in UNSIGNED:
        return np.array([0, 1, 2, 3, 7, 100, bounds.max - 1, bounds.max, bounds.max // 2 + 1], dtype)
    return np.array([0, 1, -1, 2, -3, 7, 100, bounds.min, bounds.max, bounds.min + 1], dtype)


def arrays(dtype: str, shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
    """Arrays of any values of `dtype`, special ones often."""
    found = npst.from_dtype(np.dtype(dtype))
    return npst.arrays(dtype, shape, elements=st.one_of(st.sampled_from(list(special(dtype))), found))


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    """Whether the two agree in dtype, shape and every bit but those of a NaN; the sign of a zero counts."""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    if found.dtype.kind != "f":
        return bool(np.array_equal(found, expected))
    return bool(
        np.array_equal(found, expected, equal_nan=True)
        and np.array_equal(np.signbit(found[found == 0]), np.signbit(expected[expected == 0]))
    )
