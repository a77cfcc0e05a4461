"""Encoders of SciPy's distributions, splines and piecewise polynomials, by their inputs and state.

    distribution := origin text(name) value(state)   the name in scipy.stats; the plain attributes by name
    univariate   := origin value(ext) value((t, c, k)) value(fit)   fit: data, weights, interval, degree,
                                                                    smoothing, knots, coefficients, status
    piecewise   := origin value(t or x) value(c) value(k, None for polynomials) value(extrapolate) value(axis)

The origin (origin.py) is the release of SciPy, which describes the methods. Refused are distributions
that scipy.stats does not have under their name (frozen ones, a user's own), subclasses, objects with an
attribute that SciPy did not set or a generator of their own, and splines on arrays that are not numpy's.
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

_UNIVARIATE = frozenset(("UnivariateSpline", "InterpolatedUnivariateSpline", "LSQUnivariateSpline"))
_POLYNOMIALS = frozenset(
    ("PPoly", "CubicSpline", "CubicHermiteSpline", "PchipInterpolator", "Akima1DInterpolator")
)
_OF_UNIVARIATE = frozenset(("ext", "_eval_args", "_data", "_spline_class"))
_OF_PIECEWISE = frozenset(("t", "_t", "x", "_x", "c", "_c", "k", "extrapolate", "axis"))
_OF_NAMESPACES = frozenset(("_delegate_to", "_xp", "_xp_internal", "_asarray"))
"""Attributes by which SciPy finds the library of the arrays, and a copy of the spline for numpy's arrays."""

_N, _KNOTS, _COEFFICIENTS, _WORKSPACES = 7, 8, 9, (11, 12)
"""Positions in `_data`. Workspaces, and the ends of knots and coefficients, are unset or used only to
continue a fit, which changes the spline."""


def encoder_for(cls: type) -> Callable[[Encoder, Any], None] | None:
    """Return the unframed encoder for objects of exactly `cls`, or None."""
    return _spline_encoder(cls) or _distribution_encoder(cls)


def _spline_encoder(cls: type) -> Callable[[Encoder, Any], None] | None:
    """Return the unframed encoder for a spline of exactly `cls`, or None."""
    if getattr(sys.modules.get("scipy.interpolate"), cls.__name__, None) is not cls:
        return None
    if cls.__name__ in _UNIVARIATE:
        return _encode_univariate
    return _encode_piecewise if cls.__name__ == "BSpline" or cls.__name__ in _POLYNOMIALS else None


def _encode_univariate(encoder: Encoder, spline: Any) -> None:
    _begin_spline(encoder, spline, _OF_UNIVARIATE)
    fit = list(spline._data)
    fit[_KNOTS], fit[_COEFFICIENTS] = fit[_KNOTS][: fit[_N]], fit[_COEFFICIENTS][: fit[_N]]
    for position in _WORKSPACES:
        fit[position] = None
    for part in (spline.ext, tuple(spline._eval_args), fit):
        encoder.value(part)


def _encode_piecewise(encoder: Encoder, spline: Any) -> None:
    _begin_spline(encoder, spline, _OF_PIECEWISE | _OF_NAMESPACES)
    is_polynomial = type(spline).__name__ in _POLYNOMIALS
    breakpoints = spline.x if is_polynomial else spline.t
    if type(breakpoints) is not np.ndarray or type(spline.c) is not np.ndarray:
        raise Unfingerprintable(_name(spline), "make it of numpy's arrays")
    degree = None if is_polynomial else int(spline.k)
    for part in (breakpoints, spline.c, degree, spline.extrapolate, int(spline.axis)):
        encoder.value(part)


def _begin_spline(encoder: Encoder, spline: Any, known: frozenset[str]) -> None:
    module = type(spline).__module__
    if origin_of(module, encoder.described) == "followed":
        raise Unfingerprintable(_name(spline), "use a release of SciPy: this one's code is not read")
    write_origin(encoder, module, encoder.described)
    for name in vars(spline).keys() - known:
        raise Unfingerprintable(
            _name(spline), f"its attribute {name!r} is none of SciPy's; hold it elsewhere"
        )


def _name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


_BASES = frozenset(("rv_generic", "multi_rv_generic"))
_PLAIN = (type(None), bool, int, float, str, tuple)
_STATE = frozenset(
    (
        "_stats_has_moments", "_ctor_param", "badvalue", "name", "a", "b", "xtol", "moment_type",
        "moment_tol", "inc", "shapes", "numargs", "_parse_arg_template", "_support",
    )
)  # fmt: skip
_MADE = frozenset(
    (
        "_parse_args", "_parse_args_stats", "_parse_args_rvs", "_ppfvec", "_cdfvec", "vecentropy",
        "generic_moment",
    )
)  # fmt: skip
"""Attributes that SciPy derives from class and state: bound methods, and vectorized ones."""


def _distribution_encoder(cls: type) -> Callable[[Encoder, Any], None] | None:
    """Return the unframed encoder for a distribution of exactly `cls`, or None."""
    bases = (base for base in cls.__mro__ if base.__module__.startswith("scipy.stats."))
    is_distribution = not _BASES.isdisjoint(base.__name__ for base in bases)
    return _encode_distribution if is_distribution and cls.__module__.startswith("scipy.stats.") else None


def _encode_distribution(encoder: Encoder, value: Any) -> None:
    module = type(value).__module__
    name = getattr(value, "name", None) or type(value).__name__.removesuffix("_gen")
    if origin_of(module, encoder.described) == "followed":
        raise Unfingerprintable(_name(value), "use a release of SciPy: this one's code is not read")
    if getattr(sys.modules.get("scipy.stats"), name, None) is not value:
        raise Unfingerprintable(_name(value), "use a distribution of scipy.stats by its name there")
    if vars(value).get("_random_state") is not np.random.mtrand._rand:
        raise Unfingerprintable(
            _name(value), "leave the generator of the distribution alone, and pass random_state"
        )
    write_origin(encoder, module, encoder.described)
    encoder.text(name)
    encoder.value({key: item for key, item in vars(value).items() if _is_state(value, key, item)})


def _is_state(value: Any, key: str, item: Any) -> bool:
    """Return True if the attribute is state, False if it is derived; raises Unfingerprintable for unknown
    ones."""
    if key in ("__doc__", "_random_state") or (key in _MADE and _is_made_by_scipy(value, item)):
        return False
    is_plain = isinstance(item, _PLAIN) or (key == "_ctor_param" and type(item) is dict)
    if key not in _STATE or not is_plain:
        raise Unfingerprintable(
            _name(value), f"its attribute {key!r} is none that SciPy set; leave SciPy's objects alone"
        )
    return True


def _is_made_by_scipy(value: Any, item: Any) -> bool:
    """Return True if `item` is a method bound to the distribution, possibly vectorized, that no user module
    defines."""
    function: Any = item
    while isinstance(function, MethodType | np.vectorize):
        if isinstance(function, MethodType) and function.__self__ is not value:
            return False
        function = function.__func__ if isinstance(function, MethodType) else function.pyfunc
    module = getattr(
        function, "__module__", None
    )  # functions that SciPy generates for a distribution have no module
    return module is None or module.startswith("scipy.stats.")
