"""Encoders of numpy's values.

    dtype  := 'd' text(dtype.str)                                     kind, byte order, size, unit of a time
    scalar := 'n' text(dtype.str) bytes(the value)
    array  := 'a' text(dtype.str) uint(ndim) uint(extent)*ndim bytes(the elements in C order)
            | 'h' text(dtype.str) uint(ndim) uint(extent)*ndim digest   BLAKE2b-256, if over 64 KiB

Strides, flags and alignment are not identity; byte order is. Refused are object, structured, void
and variable-width string dtypes (their bytes contain pointers or padding), long double (its padding
is uninitialised), dtypes with metadata or from outside numpy, and subclasses of ndarray, including
masked arrays (they hold more than their elements).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cachegraph.errors import Unfingerprintable

if TYPE_CHECKING:
    from cachegraph.fingerprint.encoder import Encoder

# dtypes from outside numpy may share a kind or character with numpy's, but never a number
_PLAIN = frozenset(np.dtype(char).num for char in "?bhilqBHILQefdFDMmSU")


LARGE = 64 * 1024
"""Larger arrays are written as a digest: an encoding is stored beside every entry."""


def encoder_for(cls: type) -> Callable[[Encoder, Any], None] | None:
    """Return the encoder for values of exactly `cls` if it is one of numpy's own array, scalar or dtype
    classes.

    Raises Unfingerprintable for a subclass of ndarray.
    """
    if cls is np.ndarray:
        return _encode_array
    if issubclass(cls, np.ndarray):
        raise Unfingerprintable(
            f"{cls.__module__}.{cls.__qualname__}", "pass a plain array: numpy.asarray(value)"
        )
    if issubclass(cls, np.dtype):
        return _encode_dtype
    if issubclass(cls, np.generic) and np.dtype(cls).type is cls:
        return _encode_scalar
    return None


def _encode_dtype(encoder: Encoder, value: np.dtype[Any]) -> None:
    encoder.tag(b"d")
    encoder.text(_plain_name(value))


def _encode_scalar(encoder: Encoder, value: np.generic) -> None:
    encoder.tag(b"n")
    encoder.text(_plain_name(value.dtype))
    encoder.bytes(value.tobytes())


def _encode_array(encoder: Encoder, value: np.ndarray[Any, Any]) -> None:
    is_large = value.nbytes > LARGE
    encoder.tag(b"h" if is_large else b"a")
    encoder.text(_plain_name(value.dtype))
    encoder.uint(value.ndim)
    for extent in value.shape:
        encoder.uint(extent)
    content = value.tobytes(order="C")
    if is_large:
        encoder.strong_digest(content)
    else:
        encoder.bytes(content)


def _plain_name(dtype: np.dtype[Any]) -> str:
    if dtype.num not in _PLAIN:
        raise Unfingerprintable(
            f"dtype {dtype}", "use a plain boolean, number, time or fixed-width string dtype"
        )
    if dtype.metadata:
        raise Unfingerprintable(f"dtype {dtype} with metadata", "use the dtype without its metadata")
    return dtype.str
