"""Numbers and markers under numpy's names."""

from __future__ import annotations

from numpy import e, euler_gamma, inf, nan, newaxis, pi

__all__ = ["e", "euler_gamma", "inf", "nan", "newaxis", "pi"]
