"""Code that reads what is no part of it, and code that does not, by what each does."""

from __future__ import annotations

import codecs
import collections
import configparser
import dataclasses
import datetime
import decimal
import enum
import functools
import gzip
import importlib.resources
import itertools
import json
import logging
import math
import operator
import os
import pkgutil
import random
import re
import sqlite3
import statistics
import sys
import time
import typing
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import PurePath
from typing import Any

import numba
import numpy as np
import scipy.integrate
import scipy.interpolate
import scipy.io
import scipy.linalg
import scipy.optimize
import scipy.special
import scipy.stats
from numpy import linalg as la

import engine.tensor as pt

LOG = logging.getLogger("cases")
ENVIRONMENT = os.environ.get


class Holder:
    def __init__(self) -> None:
        self.function: Any = np.loadtxt

    def __getitem__(self, place: Any) -> Any:
        return self.function(place)


class Slotted:
    __slots__ = ("function",)


class Reading(gzip.GzipFile):
    pass


class OfReading(type):
    def __call__(cls) -> Any:
        return open("x")


class Made(metaclass=OfReading):
    pass


@functools.lru_cache
def cached() -> Any:
    return np.load("x")


@functools.singledispatch
def dispatching(x: Any) -> Any:
    return x


@dispatching.register
def _(x: int) -> Any:
    return np.load("x")


def imports_a_module() -> Any:
    import scipy.io

    return scipy.io.loadmat("x")


def imports_a_name() -> Any:
    from os import environ as e

    return e["x"]


def renames() -> Any:
    rng = np.random
    return rng.normal()


def has_default(read: Any = np.load) -> Any:
    return read("x")


holder, slotted = Holder(), Slotted()
slotted.function = np.load  # type: ignore[attr-defined]

READING: dict[str, Callable[..., Any]] = {
    "gzip": lambda: gzip.open("x"),  # noqa: SIM115
    "codecs": lambda: codecs.open("x"),  # noqa: SIM115
    "resources": lambda: importlib.resources.files("x"),
    "pkgutil": lambda: pkgutil.get_data("x", "y"),
    "loadmat": lambda: scipy.io.loadmat("x"),
    "open_memmap": lambda: np.lib.format.open_memmap("x"),
    "sqlite3": lambda: sqlite3.connect("x"),
    "configparser": lambda: configparser.ConfigParser().read("x"),
    "expandvars": lambda: os.path.expandvars("$x"),
    "randint": lambda: np.random.randint(3),
    "random": lambda: random.random(),
    "a context": lambda: decimal.getcontext().prec,
    "decimals": lambda: decimal.Decimal("1") / 3,
    "sys.get": lambda: sys.getrecursionlimit(),
    "cpu_count": lambda: os.cpu_count(),
    "a level": lambda: LOG.level,
    "an effective level": lambda: logging.getLogger("x").getEffectiveLevel(),
    "is enabled": lambda: LOG.isEnabledFor(10),
    "a clock": lambda: time.perf_counter(),
    "a date": lambda: datetime.datetime.now(),
    "a hash": lambda: hash("a"),
    "an address": lambda: id(LOG),
    "numpy's settings": lambda: np.geterr(),
    "fromfile": lambda: np.fromfile("x"),
    "by a text": lambda: getattr(np, "load")("x"),  # noqa: B009
    "by attrgetter": lambda: operator.attrgetter("load")(np),
    "as an argument": lambda: list(map(np.loadtxt, ["x"])),
    "rvs": lambda: scipy.stats.norm.rvs(),
    "frozen": lambda: scipy.stats.norm(0, 1).rvs(),
    "a bound method": lambda: ENVIRONMENT("x"),
    "an operator": lambda: holder[0],
    "an instance": lambda: holder.function("x"),
    "a slot": lambda: slotted.function("x"),  # type: ignore[attr-defined]
    "a metaclass": lambda: Made(),
    "a base": lambda: Reading("x"),
    "a cache": lambda: cached(),
    "a dispatcher": lambda: dispatching(3),
    "a minimum": lambda: scipy.optimize.differential_evolution(len, [(0, 1)]),
    "import": imports_a_module,
    "import from": imports_a_name,
    "renamed": renames,
    "default": has_default,
    "partial": partial(np.loadtxt, "x"),
    "partial of": partial(map, np.loadtxt),
    "a descriptor": np.random.RandomState.normal,
}


@dataclasses.dataclass
class Pair:
    a: int = 3

    def total(self) -> int:
        return self.a


class Named(typing.NamedTuple):
    a: int


class Kind(enum.Enum):
    A = 1


@numba.njit
def plus_one(x: Any) -> Any:
    return x + 1


def compiles(x: Any) -> Any:
    @numba.njit
    def inner(y: Any) -> Any:
        return plus_one(y) + 1

    return inner, numba.types.float64, numba.prange(3), numba.literal_unroll(x)


def imports_what_computes(x: Any) -> Any:
    import numpy as np
    import scipy.special as sc
    from scipy import linalg

    return np.exp(x) + sc.expit(x) + linalg.cho_solve(x, x) + np.linalg.det(x)


def ignores(x: Any) -> Any:
    LOG.info("x")
    warnings.warn("x", stacklevel=2)
    with np.errstate(all="ignore"):
        return np.r_[x, x], np.s_[1:], np.ix_(x), np.finfo(float).eps, np.float64(3), np.dtype("f8")


def fails(x: Any) -> Any:
    raise ValueError(f"bad {x!r}") from KeyError("x")


NAMES, NUMBERS = {"a", "b", "c", "d", "e", "f", "g", "h"}, {1, 2, 3}
BACKWARDS = {8, 0}  # in that order: they collide in a table of 8


TEXT = "text"


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: int


class Sets:
    number = 3
    names: Any = NAMES
    first: Any = []
    second: Any = first

    def tests(self, x: Any) -> Any:
        return x in self.names and self.first is None and type(x) is float and len(NAMES)

    def iterates(self, x: Any) -> Any:
        return [x + name for name in self.names]

    def compares(self, x: Any) -> Any:
        return x if self.first is self.second else -x


def tests_sets(x: Any) -> Any:
    return x in NAMES or x in {"a", "b", "c"} or sorted(NAMES) or [k for k in NUMBERS] or x is NAMES  # noqa: C416


def compares_with_the_free_variable(value: object) -> Callable[..., Any]:
    """Return a function that compares its argument with `value` by identity."""
    return lambda x: x is value


def compares_with_a_constant() -> Callable[..., Any]:
    """Return a function that compares its argument with a tuple by identity, of which Python warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        found: Callable[..., Any] = eval("lambda x: x is (1, 2)")
    return found


vectorized = np.vectorize(lambda x: x + 1)
ARRAY, FROZEN = np.zeros(3), scipy.stats.gamma(2.0)
SPLINE = scipy.interpolate.CubicSpline([0, 1, 2], [0, 1, 2])

COMPUTING: dict[str, Callable[..., Any]] = {
    "numpy": lambda x: np.sqrt(np.mean(x)) + np.linalg.solve(x, x) + np.fft.fft(x) + la.norm(x) + np.add.reduce(x),
    "numbers": lambda x: np.array(x, dtype=np.float64).astype("int64")[:, None] + np.int8(2),
    "numpy's classes": lambda x: (np.polynomial.Polynomial([1, 2])(x), np.ma.masked_array(x)),
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(x, 3),
    "math": lambda x: math.log(x) + scipy.special.gammaln(x) + scipy.special.logsumexp(x),
    "stats": lambda x: scipy.stats.norm.logpdf(x) + scipy.stats.norm(0, 1).pdf(x) + FROZEN.cdf(x),
    "optimize": lambda x: (scipy.optimize.minimize(lambda y: y, x).x, scipy.optimize.brentq(lambda y: y, 0, 1)),
    "integrate": lambda x: (scipy.integrate.quad(lambda y: y, 0, 1), scipy.integrate.solve_ivp(len, (0, 1), x)),
    "interpolate": lambda x: (scipy.interpolate.interp1d(x, x)(x), SPLINE(x) + ARRAY),
    "linalg": lambda x: (scipy.linalg.lapack.dpotrf(x), scipy.linalg.blas.dgemm(1, x, x)),
    "functions": lambda x: (functools.reduce(operator.mul, x), list(itertools.chain(x, x)), sorted(x), max(x)),
    "collections": lambda x: (collections.Counter(x), re.compile("a").match("b"), json.dumps(3)),
    "instances": lambda x: (Pair(4).total() + Pair().a, Named(3).a, Kind.A, Kind(1)),
    "statistics": lambda x: (statistics.mean(x), sys.float_info.eps, sys.maxsize, os.path.join("a", "b"), PurePath("x")),
    "tests of sets": tests_sets,
    "tests of attributes": Sets().tests,
    "tests of identity": lambda x: x is ARRAY or x is Sets or x is Kind.A or x is None or x is ...,
    "a free class": compares_with_the_free_variable(Pair),
    "a frozen dataclass": Frozen(1).__setattr__,
    "tests of types": lambda x: isinstance(x, np.ndarray) and issubclass(type(x), float),
    "vectorized": lambda x: vectorized(x),
    "graphs": lambda x: [(pt.exp(x)[0] + pt.prod(x),)],
    "numba": compiles,
    "imports": imports_what_computes,
    "ignores": ignores,
    "fails": fails,
    "a ufunc": np.exp,
    "SciPy's": scipy.special.expit,
    "native": math.gamma,
}  # fmt: skip

TELLING: dict[str, Callable[..., Any]] = {
    "a set": lambda: list(NAMES),
    "a set of numbers": lambda: list(BACKWARDS),
    "a constant": lambda: [name for name in {"a", "b", "c", "d", "e", "f", "g", "h"}],  # noqa: C416
    "an attribute": Sets().iterates,
    "identity": Sets().compares,
    "identity of a text": lambda x: x is TEXT,
    "identity of a class's number": lambda x: x is Sets.number,
    "identity of a constant": compares_with_a_constant(),
    "identity of a free text": compares_with_the_free_variable("text"),
}
"""Code that can tell what no key says of values."""
