"""A comparison of stored code with freshly compiled code, by what both do with the arguments of a call
(mode verify).

Each runs on its own copies, so that a call overwrites or draws once, when the user's call runs. Results,
the arguments afterwards, states of generators and errors must be the same; numbers may differ as far as
reordered arithmetic does.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cachegraph.caching.results import is_close

_CANCELLED = 1e-2
"""The tolerance's scale, as a share of the largest number: smaller numbers may be what a sum leaves."""
_PLAIN = (type, int, str, bytes, slice)
"""Types compared by ==; values of unknown types are not compared."""
_OF_SPARSE = ("data", "indices", "indptr")


def difference(
    stored: Callable[..., Any], compiled: Callable[..., Any], arguments: Sequence[Any]
) -> str | None:
    """Return how `stored` differs from `compiled` with `arguments`, for people; None if they do the same.

    If `compiled` does not repeat its own results (unwritten memory, numba's own generator), they tell
    nothing. Raises what copying the arguments raises.
    """
    found, due = _outcome(stored, arguments), _outcome(compiled, arguments)
    if _is_same(found, due) or not _is_same(_outcome(compiled, arguments), due):
        return None
    return f"with the arguments of a call it gives {_shown(found)} instead of {_shown(due)}"


def _outcome(code: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Return the results and the arguments afterwards, or the error; the caller's arrays stay as they are."""
    copies = copy.deepcopy(tuple(arguments))
    try:
        return code(*copies), copies
    except Exception as error:
        return type(error), str(error)


def _is_same(found: Any, due: Any) -> bool:
    return _is_alike(found, due, _CANCELLED * max(_magnitudes(due), default=0.0))


def _is_alike(found: Any, due: Any, magnitude: float) -> bool:
    if type(found) is not type(due):
        return False
    if isinstance(due, np.ndarray | np.generic | float | complex):
        return is_close(np.asarray(found), np.asarray(due), magnitude)
    if isinstance(due, np.random.Generator):
        return _is_alike(found.bit_generator.state, due.bit_generator.state, 0.0)
    if isinstance(due, Mapping):
        return found.keys() == due.keys() and all(_is_alike(found[k], due[k], magnitude) for k in due)
    if isinstance(due, list | tuple):
        pairs = zip(found, due, strict=False)
        return len(found) == len(due) and all(_is_alike(a, b, magnitude) for a, b in pairs)
    if all(hasattr(due, name) for name in _OF_SPARSE):
        return _is_alike(_parts(found), _parts(due), magnitude)
    return not isinstance(due, _PLAIN) or bool(found == due)


def _parts(sparse: Any) -> list[Any]:
    return [tuple(sparse.shape), *(getattr(sparse, name) for name in _OF_SPARSE)]


def _magnitudes(value: Any) -> Iterator[float]:
    """Yield the largest finite number of each array of `value`."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _magnitudes(item)
    elif isinstance(value, np.ndarray | np.generic | float | complex):
        numbers = np.asarray(value)
        if numbers.dtype.kind in "fc":
            with np.errstate(all="ignore"):
                sizes = np.abs(numbers)
            yield float(np.max(sizes, where=np.isfinite(sizes), initial=0.0))


def _shown(outcome: Any) -> str:
    if isinstance(outcome[0], type):
        return f"{outcome[0].__name__}: {outcome[1]}"[:200]
    return repr(outcome[0])[:200]
