"""nutpie's functions of C: the density with its gradient, and the expansion to all variables.

nutpie (0.16) makes a Python function around each compiled function of PyTensor, and gives it to
numba.cfunc. It has the addresses, sizes and shapes of shared variables from the user data, a record that
each call is given. Otherwise it is made of lengths, the compiled function, the layout of the record, and
the types of the shared arrays. The arrays are also constants of its code, which replaces each before it
reads it. Here arrays of one element stand for them, so that no entry holds a user's data.

    description := encode((scheme, version, kind, lengths, function, layout, shared, nutpie))

`function` is the description of the compiled function (stored_graph.py). The names of the record's fields
differ in every process: the layout has their numbers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cachegraph.errors import CachegraphError
from cachegraph.fingerprint.encoding import encode
from cachegraph.named_tuples import NamedTuple
from cachegraph.pytensor.code.stored_function import StoredFunction
from cachegraph.pytensor.describe.host_packages import encode_package

VERSION = 1
PACKAGE = "nutpie"
_DESCRIBED = "_cachegraph_callback"
_DATA = "biufc"
"""The kinds of dtypes that shared arrays may have."""


class Undescribed(CachegraphError):
    """nutpie's callback has no description: what was `found`, and a short `kind` that is counted."""

    def __init__(self, kind: str, found: str) -> None:
        super().__init__(kind, found)
        self.kind = kind
        self.found = found

    def __str__(self) -> str:
        return f"storing a function of nutpie's: {self.found}; every process compiles it again"


class CFunctionSource(NamedTuple):
    """The source of one function of C: its `description`, and the compiled function that it calls.

    `lengths` are those that nutpie calls it with. `user_data` is the record of the shared variables that it
    was made for.
    """

    description: bytes
    function: StoredFunction
    lengths: tuple[int, ...]
    user_data: Any

    def called_at(self, address: int) -> Callable[..., int]:
        """Return the function of C at `address`, to be called with a point and the arrays for its results."""
        found = ctypes.CFUNCTYPE(
            ctypes.c_int64,
            *[ctypes.c_uint64] * len(self.lengths),
            *[ctypes.c_void_p] * (2 + len(self.results())),
        )(address)

        def call(*arrays: Any) -> int:
            pointers = (array.ctypes.data for array in arrays)
            status: int = found(*self.lengths, *pointers, self.user_data.ctypes.data)
            return status

        return call

    def results(self) -> list[Any]:
        """Return arrays for the results: the gradient and the density, or the expanded values."""
        is_density = len(self.lengths) == 1
        return [np.zeros(self.lengths[0]), np.zeros(())] if is_density else [np.zeros(self.lengths[1])]


def callback_of(function: Any) -> CFunctionSource | None:
    """Return what a Python function computes that `described` made; None for any other."""
    found: CFunctionSource | None = vars(function).get(_DESCRIBED)
    return found


def described(made: Any, callback: CFunctionSource) -> Any:
    """Return the Python function `made`, as one that computes what `callback` says."""
    vars(made)[_DESCRIBED] = callback
    return made


def callback_for(
    kind: str,
    lengths: Sequence[int],
    function: Any,
    user_data: Any,
    keys: Sequence[str],
    data: Mapping[str, Any],
) -> tuple[CFunctionSource, dict[str, Any]]:
    """Return what nutpie's function `kind` makes of these arguments, and arrays to make it of for `data`.

    Raises Undescribed if it has no description, and SourceError for an edited nutpie.
    """
    if not isinstance(function, StoredFunction):
        raise Undescribed("without a key", "what it calls is not stored, or the cache is not used")
    stand_ins = {key: _stand_in(data[key]) for key in keys}
    written = (
        *("nutpie callback", VERSION, kind, tuple(lengths), function.description),
        *_described_data(user_data.dtype, keys, data),
        encode_package(PACKAGE),
    )
    return CFunctionSource(encode(written), function, tuple(lengths), user_data), stand_ins


def _stand_in(array: Any) -> Any:
    """Return an array of one element of the type that numba sees in `array`."""
    if type(array) is not np.ndarray or array.dtype.kind not in _DATA or not array.dtype.isnative:
        raise Undescribed(
            "foreign objects", f"a shared variable is a {type(array).__name__} of {array.dtype}"
        )
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise Undescribed("foreign objects", "a shared variable has an order of its own")
    found = np.zeros((1,) * array.ndim, array.dtype)
    found.flags.writeable = array.flags.writeable
    return found


def _described_data(dtype: Any, keys: Sequence[str], data: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the layout of the user data, and which of its arrays the function reads, with their types."""
    if not keys:
        return None, ()
    numbers = {key: number for number, key in enumerate(data)}
    shared = [(numbers[key], data[key].dtype.str, data[key].ndim, data[key].flags.writeable) for key in keys]
    return _layout(dtype, numbers), tuple(shared)


def _layout(dtype: Any, numbers: Mapping[str, int]) -> tuple[Any, ...]:
    """Return where a record has its fields, with the number of each named in `numbers` for its name."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return "array", _layout(base, numbers), shape
    if dtype.names is None:
        return "plain", dtype.str
    fields = ((numbers.get(name, name), *dtype.fields[name][:2]) for name in dtype.names)
    found = tuple((name, offset, _layout(of, numbers)) for name, of, offset in fields)
    return "record", dtype.itemsize, dtype.isalignedstruct, found
