"""Encoders of SciPy's splines and piecewise polynomials, by what they were made of and what they compute from.

    univariate := origin value(ext) value((t, c, k)) value(fit)     fit: the data, the weights, the interval, the degree,
                                                                    the smoothing, the knots, the coefficients, how it went
    piecewise  := origin value(t or x) value(c) value(k, None for polynomials) value(extrapolate) value(axis)

The origin is the release of SciPy (origin.py).

These are the classes of that name in scipy.interpolate and no others; one with an attribute that is not known here, or on arrays
that are not numpy's, is refused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
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
"""How SciPy finds the library that the arrays are of, and a spline on numpy's arrays with the same parts."""

_N, _KNOTS, _COEFFICIENTS, _WORKSPACES = 7, 8, 9, (11, 12)
"""Positions in `_data`. The workspaces, and what lies after the knots and the coefficients that there are, were never set, or
are only read where a fit is continued, which changes the spline."""


def encoder_for(cls: type) -> Callable[[Encoder, Any], None] | None:
    """Return what writes a spline of exactly `cls`, unframed; None if it is none of SciPy's."""
    if getattr(sys.modules.get("scipy.interpolate"), cls.__name__, None) is not cls:
        return None
    if cls.__name__ in _UNIVARIATE:
        return _encode_univariate
    return _encode_piecewise if cls.__name__ == "BSpline" or cls.__name__ in _POLYNOMIALS else None


def _encode_univariate(encoder: Encoder, spline: Any) -> None:
    _begin(encoder, spline, _OF_UNIVARIATE)
    fit = list(spline._data)
    fit[_KNOTS], fit[_COEFFICIENTS] = fit[_KNOTS][: fit[_N]], fit[_COEFFICIENTS][: fit[_N]]
    for position in _WORKSPACES:
        fit[position] = None
    for part in (spline.ext, tuple(spline._eval_args), fit):
        encoder.value(part)


def _encode_piecewise(encoder: Encoder, spline: Any) -> None:
    _begin(encoder, spline, _OF_PIECEWISE | _OF_NAMESPACES)
    is_polynomial = type(spline).__name__ in _POLYNOMIALS
    places = spline.x if is_polynomial else spline.t
    if type(places) is not np.ndarray or type(spline.c) is not np.ndarray:
        raise Unfingerprintable(_name(spline), "make it of numpy's arrays")
    degree = None if is_polynomial else int(spline.k)
    for part in (places, spline.c, degree, spline.extrapolate, int(spline.axis)):
        encoder.value(part)


def _begin(encoder: Encoder, spline: Any, known: frozenset[str]) -> None:
    module = type(spline).__module__
    if origin_of(module, encoder.described) == "followed":
        raise Unfingerprintable(_name(spline), "use a release of SciPy: this one's code is not read")
    write_origin(encoder, module, encoder.described)
    for name in vars(spline).keys() - known:
        raise Unfingerprintable(
            _name(spline), f"its attribute {name!r} is none of SciPy's; hold it elsewhere"
        )


def _name(spline: Any) -> str:
    return f"{type(spline).__module__}.{type(spline).__qualname__}"
