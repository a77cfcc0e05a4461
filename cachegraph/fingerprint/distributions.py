"""Encoder of the distributions that scipy.stats offers: `norm`, `gamma`, `multivariate_normal` and the like.

    distribution := origin text(name) value(state)        its name in scipy.stats; the state: its plain attributes by name

The origin is the release of SciPy (origin.py), which describes the methods. One that scipy.stats does not have under its name (a
frozen one, or a user's own), that has a generator of its own or an attribute that SciPy did not set, is refused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.origin import origin_of, write_origin

if TYPE_CHECKING:
    from cachegraph.fingerprint.encoder import Encoder

_BASES = frozenset(("rv_generic", "multi_rv_generic"))
_PLAIN = (type(None), bool, int, float, str, tuple)
_STATE = frozenset(
    (
        "_stats_has_moments", "_ctor_param", "badvalue", "name", "a", "b", "xtol", "moment_type", "moment_tol", "inc",
        "shapes", "numargs", "_parse_arg_template", "_support",
    )
)  # fmt: skip
_MADE = frozenset(
    (
        "_parse_args", "_parse_args_stats", "_parse_args_rvs", "_ppfvec", "_cdfvec", "vecentropy", "generic_moment",
    )
)  # fmt: skip
"""What SciPy makes of the class and the state when it makes a distribution: bound methods, and those over arrays."""


def encoder_for(cls: type) -> Callable[[Encoder, Any], None] | None:
    """Return what writes a distribution of exactly `cls`, unframed; None if it is none of SciPy's."""
    bases = (base for base in cls.__mro__ if base.__module__.startswith("scipy.stats."))
    is_distribution = not _BASES.isdisjoint(base.__name__ for base in bases)
    return _encode if is_distribution and cls.__module__.startswith("scipy.stats.") else None


def _encode(encoder: Encoder, value: Any) -> None:
    module = type(value).__module__
    name = getattr(value, "name", None) or type(value).__name__.removesuffix("_gen")
    if origin_of(module, encoder.described) == "followed":
        raise _refused(value, "use a release of SciPy: this one's code is not read")
    if getattr(sys.modules.get("scipy.stats"), name, None) is not value:
        raise _refused(value, "use a distribution of scipy.stats by its name there")
    if vars(value).get("_random_state") is not np.random.mtrand._rand:
        raise _refused(value, "leave the generator of the distribution alone, and pass random_state")
    write_origin(encoder, module, encoder.described)
    encoder.text(name)
    encoder.value({key: item for key, item in vars(value).items() if _is_state(value, key, item)})


def _is_state(value: Any, key: str, item: Any) -> bool:
    """Whether the attribute is a part of the state, and not what follows from it; raises Unfingerprintable for others."""
    if key in ("__doc__", "_random_state") or (key in _MADE and _is_made_by_scipy(value, item)):
        return False
    is_plain = isinstance(item, _PLAIN) or (key == "_ctor_param" and type(item) is dict)
    if key not in _STATE or not is_plain:
        raise _refused(value, f"its attribute {key!r} is none that SciPy set; leave SciPy's objects alone")
    return True


def _is_made_by_scipy(value: Any, item: Any) -> bool:
    """Whether `item` is a method bound to the distribution, perhaps over arrays, that no user's module defines."""
    function: Any = item
    while isinstance(function, MethodType | np.vectorize):
        if isinstance(function, MethodType) and function.__self__ is not value:
            return False
        function = function.__func__ if isinstance(function, MethodType) else function.pyfunc
    module = getattr(function, "__module__", None)  # what SciPy writes for each distribution is in no module
    return module is None or module.startswith("scipy.stats.")


def _refused(value: Any, remedy: str) -> Unfingerprintable:
    return Unfingerprintable(f"{type(value).__module__}.{type(value).__qualname__}", remedy)
