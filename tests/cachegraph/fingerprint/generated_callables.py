"""Generated callables of every kind, as the source of a module: the same ones from the same seed, in every process.

A module is a prelude and pieces, each of which defines one callable by a name of its own. Pieces come in any order,
with or without comments, docstrings and annotations: they define the same callables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

HELPERS = '''
"""What the generated module calls of another one."""
import math
from numpy import float64

__all__ = ["starred", "STARRED"]
STARRED = 11.5
SCALE = 2.25
_OFFSET = 3

def first(x):
    return x * SCALE + _OFFSET

def second(x):
    return first(x) - math.sqrt(2.0)

def starred(x, by=STARRED):
    return x / by

class Unit:
    size = 4
    def of(self, x):
        return second(x) % self.size

UNIT = Unit()
'''

PRELUDE = """
import abc
import asyncio
import contextlib
import dataclasses
import enum
import functools
import math
import operator
from collections import namedtuple
from typing import NamedTuple

import numba
import numpy as np
import scipy.special

import {helpers} as helpers
from {helpers} import *
from {helpers} import second

WIDTH = 7
TABLE = {{"a": 1, "b": (2, 3.5)}}
ARRAY = np.array([1.0, -2.0, 4.5])
LIMITS = {{2, 3, 5}}

def plus(x):
    return x + WIDTH

def minus(x):
    return x - WIDTH
"""

_KINDS = {
    "function": "def $me(x, y=$int):\n    return x $op y $op $int",
    "keywords": "def $me(x, /, z, *rest, k=$float, m=$int, **more):\n    return x $op z $op k $op m $op len(rest)",
    "lambda": "$me = lambda x, y=$float: x $op y $op $helper(x)",
    "closure": """
def make_$me(a, b):
    def inner(x):
        return x $op a $op b $op $int
    return inner
$me = make_$me($int, $float)""",
    "nonlocal": """
def make_$me(count):
    def inner(x):
        nonlocal count
        count += $int
        return x $op count
    return inner
$me = make_$me($int)""",
    "nested": """
def $me(x):
    def inner(y, by=$int):
        def innermost(z):
            return z $op WIDTH $op $float
        return innermost(y) $op by
    return inner(x)""",
    "comprehension": "def $me(x):\n    return [y $op $int for y in x if y $cmp WIDTH], {y: y $op $float for y in TABLE}",
    "generator": "def $me(n):\n    for i in range($int):\n        got = yield i $op n\n    return (j $op $int for j in got)",
    "delegating": "def $me(n):\n    yield from range(n, $int)\n    yield $float",
    "async": """
async def $me(n):
    async with contextlib.nullcontext() as held:
        await asyncio.sleep($float)
    return [await one async for one in n if one $cmp $int]""",
    "async_generator": "async def $me(n):\n    async for x in n:\n        yield x $op $int",
    "recursion": "def $me(n):\n    return $float if n $cmp $int else n $op $me(n - $int)",
    "mutual": """
def $me(n):
    return n $cmp $int or other_$me(n - $int)
def other_$me(n):
    return n $cmp $int and $me(n - $int)""",
    "try": """
def $me(x):
    try:
        x = x $op $int
    except (TypeError, $error) as error:
        return str(error) + $text
    else:
        x = $float
    finally:
        print(x, $int)
    return x""",
    "with": "def $me(x):\n    with contextlib.suppress($error):\n        return $helper(x) $op $int\n    return $float",
    "match": """
def $me(x):
    match x:
        case [$int, y, *rest]:
            return y, rest
        case {"key": value, **others} if value $cmp $int:
            return value $op $float
        case int(y) | float(y):
            return y $op $int
        case $text:
            return None
    return $float""",
    "f_string": 'def $me(x):\n    return f"{x!r:>{WIDTH}} {x $op $int:.3f} of {$helper(x)}"',
    "walrus": "def $me(x):\n    return y $op $float if (y := x $op $int) $cmp $int else -y",
    "branches": """
def $me(x, y):
    if x $cmp $int:
        return y $op $int
    elif y $cmp x:
        x = y $op $float
    else:
        y = $helper(x)
    return x $op y""",
    "loop": """
def $me(x):
    total = $float
    while total $cmp $int:
        total = total $op x
        if total is None:
            break
        for k in range(total, $int):
            total -= k
            continue
    else:
        total += $int
    return total""",
    "slices": "def $me(x):\n    return x[$int:], x[..., ::$int], x[-1:$int, None]",
    "constants": "def $me(x):\n    return ($int, $float, True, None, $text, -0.0, 1e999, ${int}j, b'$int', ..., x in {$int, 'a', 1180591620717411303425})",
    "starred_call": "def $me(*x, **y):\n    return max(*x, $int, key=$helper, **y), [*x, $float], {**y, $text: $int}",
    "keyword_call": "def $me(x):\n    return dict(k=x $op $int, m=$float, by=$helper(x))",
    "global_table": "def $me(x):\n    global WIDTH\n    WIDTH = $int\n    return TABLE['b'][x] $op $int, ARRAY $op $float, x in LIMITS",
    "mutable_default": "def $me(x, seen=[$int, $float], table={$text: $int}):\n    seen.append(x)\n    return seen, table",
    "assertion": "def $me(x):\n    assert x $cmp $int, $text\n    del x\n    raise $error($text)",
    "deep_module": "def $me(x):\n    return np.linalg.$norm(x) $op scipy.special.$special(x) $op math.$mathematical($float)",
    "ufuncs": "def $me(x):\n    return np.$ufunc(x) $op np.$ufunc(x $op $int)",
    "local_import": "def $me(x):\n    from math import $mathematical as g\n    import operator\n    return g(x) $op $int",
    "of_other_module": "def $me(x):\n    return helpers.first(x) $op helpers.SCALE $op helpers.UNIT.of($int)",
    "imported": "def $me(x):\n    return second(x) $op starred(x) $op STARRED $op $int",
    "conditional": "if 'plus' in globals():\n    def $me(x):\n        return x $op $int\nelse:\n    raise ValueError",
    "class": """
class $me:
    factor = $float
    __slots__ = ("a", "_b", "__c")
    def __init__(self, a=$int):
        self.a, self._b, self.__c = a, $int, a
    def run(self, x):
        return self.a $op x $op self.factor
    @property
    def size(self):
        return self.a $op $int
    @staticmethod
    def still(x):
        return $helper(x) $op $int
    @classmethod
    def made(cls):
        return cls($int)""",
    "derived": """
class Base_$me:
    def run(self, x):
        return x $op $int
class $me(Base_$me):
    def run(self, x):
        return super().run(x) $op $float""",
    "method": """
class Class_$me:
    def __init__(self, n):
        self.n = n
    def run(self, x):
        return self.n $op x
$me = Class_$me($int).run""",
    "instance": """
class Class_$me:
    table = {$text: $int}
    def __init__(self, n):
        self.n = [n, {n: $float}]
    def __call__(self, x):
        return self.n $op x
$me = functools.partial(Class_$me($int))""",
    "local_class": """
def make_$me(n):
    class Local:
        size = $int
        def run(self, x):
            return x $op n $op self.size
    return Local
$me = make_$me($float)""",
    "makes_class": "def $me(n):\n    class Inside:\n        size = $int\n        def get(self):\n            self.size = n\n    return Inside",
    "metaclass": """
class Meta_$me(type):
    def __call__(cls, *values):
        return super().__call__(*values) $op $int
class $me(metaclass=Meta_$me):
    level = $float""",
    "descriptor": """
class Field_$me:
    def __init__(self, n):
        self.n = n
    def __get__(self, owner, cls):
        return self.n $op $int
class $me:
    field = Field_$me($int)""",
    "abstract": """
class $me(abc.ABC):
    @abc.abstractmethod
    def run(self, x):
        return x $op $int
$me.register($registered)""",
    "dataclass": """
@dataclasses.dataclass(frozen=True)
class $me:
    x: float
    y: int = $int
    z: list = dataclasses.field(default_factory=lambda: [$int])
    def moved(self, by):
        return dataclasses.replace(self, x=self.x $op by $op $float)""",
    "enum": """
class $me(enum.Enum):
    ONE = $int, $float
    TWO = $int, $text
    def __init__(self, n, other):
        self.n = n
    def doubled(self):
        return self.value[0] $op $int""",
    "flags": "class $me(enum.Flag):\n    A = $int\n    B = 512\n    C = $int",
    "tuples": """
class Tuple_$me(NamedTuple):
    x: float
    y: int = $int
    def area(self):
        return self.x $op self.y
one_$me = Tuple_$me($float)
def $me(x):
    return one_$me.area() $op x""",
    "partial": "$me = functools.partial($helper, $int, k=$float, m=[$int])",
    "partial_of_partial": "$me = functools.partial(functools.partial(helpers.starred, $float), by=functools.partial(plus, $int))",
    "wraps": """
def outer_$me(function):
    @functools.wraps(function)
    def wrapper(*args):
        return wrapper.__wrapped__(*args) $op $int
    return wrapper
@outer_$me
@outer_$me
def $me(x):
    return x $op $float""",
    "lru_cache": "@functools.lru_cache(maxsize=$int)\ndef $me(x):\n    return $helper(x) $op $float",
    "cached_property": "class $me:\n    @functools.cached_property\n    def once(self):\n        return $int $op WIDTH",
    "dispatched": """
@functools.singledispatch
def $me(x):
    return x $op $int
@$me.register(float)
def of_float_$me(x):
    return x $op $float
@$me.register($registered)
def of_more_$me(x):
    return $me(x $op $int)""",
    "context": "@contextlib.contextmanager\ndef $me(x):\n    yield x $op $int\n    print($float)",
    "vectorize": "$me = np.vectorize(lambda x: $helper(x) $op $float, otypes='$otype')",
    "njit": "@numba.njit\ndef inner_$me(x):\n    return x $op $float\n@numba.njit(fastmath=$flag, error_model='numpy')\ndef $me(x):\n    y = $int\n    return inner_$me(x) $op y $op WIDTH",
    "limited_njit": "@numba.njit('$numba(float64)')\ndef $me(x):\n    return x $op $float",
    "getter": "$me = operator.itemgetter($int, $int, $text)",
    "caller": "$me = operator.methodcaller('m$int', $float, k=$int)",
    "native_method": "$me = $text.join",
    "decorated_class": """
def adding_$me(cls):
    cls.extra = lambda self: $int
    return cls
@adding_$me
class $me:
    own = $float""",
    "builtin_replaced": "def abs_$me(x):\n    return x $op $int\nspace_$me = {'abs': abs_$me}\ndef $me(x):\n    return space_$me['abs'](x) $op abs($float)",
}

_CHOICES = {
    "op": "+ - * / % // **",
    "cmp": "< <= > >= == !=",
    "helper": "plus minus second starred helpers.first abs",
    "error": "ValueError KeyError IndexError ArithmeticError OSError",
    "ufunc": "sin cos exp log1p sqrt tanh floor square negative",
    "norm": "norm det inv pinv cond",
    "special": "erf erfc gammaln expit j0 ndtr",
    "mathematical": "sqrt cbrt exp log2 sinh atan",
    "registered": "int str bytes tuple list dict set",
    "otype": "d f l",
    "flag": "True False",
    "numba": "float64 float32 int64",
}
_UFUNCS = [
    *(f"np.{name}" for name in _CHOICES["ufunc"].split()),
    *(f"scipy.special.{name}" for name in _CHOICES["special"].split()),
    *("np.add.reduce", "np.linalg.solve", "math.sin", "len", "np.dot", "str.upper", "np.ndarray.sum"),
]


@dataclass(frozen=True)
class Piece:
    """The source that defines one callable, `name`."""

    name: str
    source: str


def pieces(seed: int, each: int) -> list[Piece]:
    """`each` callables of every kind that has a source of its own, and native ones by their names."""
    random = Random(seed)
    own = [
        _filled(random, f"{kind}_{number}", template)
        for number in range(each)
        for kind, template in _KINDS.items()
    ]
    native = [Piece(f"native_{k}", f"native_{k} = {place}") for k, place in enumerate(_UFUNCS)]
    return own + native


def _filled(random: Random, name: str, template: str) -> Piece:
    def fill(match: re.Match[str]) -> str:
        hole = match.group(1).strip("{}")
        if hole == "me":
            return name
        if hole == "int":
            return str(random.randrange(2, 99))
        if hole == "float":
            return str(random.randrange(1, 999) / 8)
        if hole == "text":
            return repr(f"text {random.randrange(999)}")
        return random.choice(_CHOICES[hole].split())

    # A name may be longer than the hole it stands in: make_$me.
    return Piece(name, re.sub(r"\$(me|\{\w+\}|[a-z]+)", fill, template).strip("\n"))


def module_source(
    chosen: list[Piece],
    helpers: str = "generated_helpers",
    order: Random | None = None,
    decorated: bool = False,
) -> str:
    """The source of a module that defines the `chosen` callables and lists them in ALL, in any `order`."""
    ordered = list(chosen)
    if order is not None:
        order.shuffle(ordered)
    sources = [_with_remarks(piece.source) if decorated else piece.source for piece in ordered]
    names = ", ".join(f"{piece.name!r}: {piece.name}" for piece in chosen)
    return "\n\n".join([PRELUDE.format(helpers=helpers), *sources, f"ALL = {{{names}}}\n"])


def _with_remarks(source: str) -> str:
    """The same definitions with comments, blank lines, docstrings and annotations at the top level."""
    source = re.sub(
        r"^((?:async )?def \w+\((?:x|n)\)):\n",
        r'\1 -> "a number":\n    """A docstring."""\n\n',
        source,
        flags=re.M,
    )
    source = re.sub(r"^((?:async )?def \w+)\((x|n)\)", r"\1(\2: float)", source, flags=re.M)
    source = re.sub(
        r"^(class [^\n]*):\n", r'\1:\n    """A docstring."""\n\n    # a comment\n', source, flags=re.M
    )
    return "# a comment\n\n\n" + source + "  # another\n"
