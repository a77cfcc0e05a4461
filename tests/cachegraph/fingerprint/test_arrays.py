"""numpy's values are their dtype, shape and elements; how they lie in memory is not identity."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint import encode, strong_digest
from cachegraph.fingerprint.arrays import LARGE
from cachegraph.fingerprint.value_difference import describe_difference

ROOT = Path(__file__).resolve().parents[3]

dtypes = (
    npst.boolean_dtypes()
    | npst.integer_dtypes(endianness="?")
    | npst.unsigned_integer_dtypes(endianness="?")
    | npst.floating_dtypes(endianness="?", sizes=(16, 32, 64))
    | npst.complex_number_dtypes(endianness="?", sizes=(64, 128))
    | npst.datetime64_dtypes(endianness="?")
    | npst.unicode_string_dtypes(endianness="?", max_len=3)
    | npst.byte_string_dtypes(endianness="?", max_len=3)
)
arrays = npst.arrays(dtypes, npst.array_shapes(min_dims=0, min_side=0, max_side=4))


def identity(array: np.ndarray[Any, Any]) -> object:
    return (array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes())


@given(arrays, arrays)
def test_encodings_of_arrays_are_equal_exactly_if_dtype_shape_and_bytes_are(a: Any, b: Any) -> None:
    assert (encode(a) == encode(b)) == (identity(a) == identity(b))
    assert encode(a) == encode(a.copy())


@given(arrays, st.data())
def test_strides_are_not_identity(array: Any, data: Any) -> None:
    copy_in_fortran_order = np.array(array, order="F")
    assert encode(copy_in_fortran_order) == encode(array)
    if array.ndim:
        step = data.draw(st.integers(2, 3))
        assert encode(np.repeat(array, step, axis=-1)[..., ::step]) == encode(array)
        assert encode(array[..., ::-1]) == encode(np.ascontiguousarray(array[..., ::-1]))
        assert encode(array.T) == encode(np.ascontiguousarray(array.T))


def test_flags_and_alignment_are_not_identity() -> None:
    array = np.arange(4.0)
    frozen = array.copy()
    frozen.flags.writeable = False
    unaligned = np.frombuffer(b"\0" + array.tobytes(), dtype="f8", offset=1)
    assert not unaligned.flags.aligned
    assert encode(frozen) == encode(unaligned) == encode(array)
    assert encode(np.broadcast_to(1.0, (3,))) == encode(np.ones(3))


def test_byte_order_is_identity() -> None:
    little, big = np.arange(3, dtype="<i4"), np.arange(3, dtype=">i4")
    assert len({encode(little), encode(big), encode(big.astype("<i4").view(">i4"))}) == 3
    assert encode(little.dtype) != encode(big.dtype)
    assert encode(np.dtype("=i4")) == encode(np.arange(3, dtype=np.int32).dtype)


def test_values_that_compare_equal_differ_by_type_dtype_or_shape() -> None:
    alike = [
        *(1, 1.0, True, np.int64(1), np.int32(1), np.uint64(1), np.float64(1), np.float32(1), np.bool_(True)),
        *(
            np.complex128(1),
            np.array(1),
            np.array(1.0),
            np.array([1]),
            np.array([[1]]),
            [1],
            np.ones((1, 1, 0)),
        ),
        *(
            np.ones((0,)),
            np.ones((0, 1)),
            np.ones((1, 0)),
            np.zeros((0,), "i8"),
            np.array(True),
            np.array("1"),
        ),
        *("1", np.str_("1"), np.bytes_(b"1"), b"1", np.datetime64(1, "s"), np.datetime64(1, "ns")),
        *(
            np.timedelta64(1, "s"),
            np.timedelta64(1, "D"),
            np.dtype("f8"),
            np.float64,
            np.dtype(np.float64).str,
        ),
        *(np.dtype("M8[s]"), np.dtype("M8[ns]"), np.dtype("U1"), np.dtype("U2"), type(np.dtype("f8"))),
    ]
    assert len({encode(value) for value in alike}) == len(alike)


def test_floats_are_their_bits() -> None:
    payload = np.array([0x7FF8000000000007], dtype="<u8").view("<f8")
    distinct = [np.array([0.0]), np.array([-0.0]), np.array([np.nan]), payload]
    assert len({encode(array) for array in distinct}) == 4
    assert len({encode(array[0]) for array in distinct}) == 4


def test_two_c_types_of_one_size_are_one_dtype() -> None:
    names = [char for char in "ilq" if np.dtype(char).itemsize == 8]
    assert len({encode(np.dtype(char)) for char in names}) == 1
    assert len({encode(np.array([1, 2], dtype=char)) for char in names}) == 1


class Float(np.float64):
    pass


REFUSED = {
    "object array": np.array([object()], dtype=object),
    "object array without elements": np.array([], dtype=object),
    "structured array": np.zeros(2, dtype=[("a", "i1"), ("b", "f8")]),
    "structured dtype": np.dtype([("a", "i1"), ("b", "f8")]),
    "structured scalar": np.zeros(2, dtype=[("a", "i1"), ("b", "f8")])[0],
    "void": np.void(b"ab"),
    "long double": np.longdouble(1),
    "long double array": np.ones(2, dtype=np.longdouble),
    "complex long double": np.ones(2, dtype=np.clongdouble),
    "variable-width strings": np.array(["a"], dtype=np.dtypes.StringDType()),
    "dtype with metadata": np.dtype("f8", metadata={"unit": "m"}),
    "masked array": np.ma.masked_array([1.0, 2.0], mask=[True, False]),
    "masked constant": np.ma.masked,
    "record array": np.zeros(1, dtype=[("a", "f8")]).view(np.recarray),
    "matrix": np.ones((2, 2)).view(np.matrix),
    "scalar subclass": Float(1.0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    with pytest.raises(Unfingerprintable) as caught:
        encode((REFUSED[name],))
    assert caught.value.path == ("[0]",)


def test_a_memory_map_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unfingerprintable, match="asarray"):
        encode(np.memmap(tmp_path / "data", dtype="f8", mode="w+", shape=3))


def test_fingerprints_do_not_import_numpy_until_there_is_an_array() -> None:
    program = "import sys; from cachegraph.fingerprint import encode; encode((1, int)); print('numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_a_large_array_is_told_by_its_digest_to_the_last_bit() -> None:
    array = np.arange(100_000.0).reshape(100, 1000)
    changed = array.copy()
    changed[99, 999] = np.nextafter(changed[99, 999], 0)
    others = [changed, array.reshape(1000, 100), array.view("i8"), array[:, ::-1], array[:90], array[:8]]
    assert len({encode(value) for value in (array, *others)}) == len(others) + 1
    assert len(encode(array)) < 100
    assert encode(np.array(array, order="F")) == encode(array)
    assert strong_digest(array.tobytes()) in encode(array)
    assert describe_difference(encode([array]), encode([changed])).startswith(
        "[0]: <f8 array of shape (100, 1000) of digest"
    )


def test_arrays_of_just_the_limit_are_written_whole() -> None:
    limit = np.zeros(LARGE // 8)
    assert limit.tobytes() in encode(limit)
    assert len(encode(np.zeros(LARGE // 8 + 1))) < 100
