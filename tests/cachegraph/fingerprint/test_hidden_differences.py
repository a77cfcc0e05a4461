"""What two callables differ in where it is hard to see: another fingerprint, or none, but never the same one."""

from __future__ import annotations

import functools
import importlib
import statistics
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint import fingerprint

PRELUDE = """
import abc, collections, dataclasses, enum, functools, importlib, operator, sys, types, typing
import numpy as np
import numba
from dataclasses import dataclass, field
from typing import NamedTuple
"""

# (what differs, source that defines f, what is replaced in it, by what)
PAIRS = [
    ("the order of a table", "TABLE = {'a': 1, 'b': 2}\ndef f(): return list(TABLE)", "'a': 1, 'b': 2", "'b': 2, 'a': 1"),
    ("the order of attributes", "class C: pass\nc = C(); c.a = 1; c.b = 2\ndef f(): return list(c.__dict__)", "c.a = 1; c.b = 2", "c.b = 2; c.a = 1"),
    ("the order of members", "class C(enum.Enum):\n A = 1; B = 2\ndef f(): return list(C)", "A = 1; B = 2", "B = 2; A = 1"),
    ("what a member is given in __new__", """
class C(enum.Enum):
    def __new__(cls, n):
        made = object.__new__(cls)
        made._value_, made.extra = n, n + 1
        return made
    A = 1
def f(): return C.A.extra""", "n + 1", "n + 2"),
    ("a cached method of an enum", "class C(enum.Enum):\n A = 1\n @functools.lru_cache\n def g(self): return 5\ndef f(): return C.A.g()", "5", "6"),
    ("a value in an enum that is no member", "class C(enum.Enum):\n A = 1\n x = enum.nonmember(5)\ndef f(): return C.x", "(5)", "(6)"),
    ("a private slot", "class C:\n __slots__ = ('__x',)\n def __init__(s, x): s.__x = x\n def g(s): return s.__x\nc = C(1)\ndef f(): return c.g()", "C(1)", "C(2)"),
    ("a slot of a base of the same name", """
class B:
    __slots__ = ("x",)
    def base(self): return B.x.__get__(self)
class C(B):
    __slots__ = ("x",)
c = C(); c.x = 1; B.x.__set__(c, 2)
def f(): return c.base()""", "(c, 2)", "(c, 3)"),
    ("which field an attribute is another name of", "class T(NamedTuple):\n x: int\n y: int\nT.z = T.x\nt = T(1, 2)\ndef f(): return t.z", "= T.x", "= T.y"),
    ("what is matched by position", "class C:\n __match_args__ = ('x', 'y')\ndef f(c):\n match c:\n  case C(1, z): return z", "('x', 'y')", "('y', 'x')"),
    ("metadata of a field", "@dataclass\nclass C:\n x: int = field(default=1, metadata={'k': 1})\ndef f(): return dataclasses.fields(C)[0].metadata", "'k': 1", "'k': 2"),
    ("a virtual subclass", "class C(abc.ABC): pass\nC.register(int)\ndef f(x): return isinstance(x, C)", "(int)", "(str)"),
    ("a method of a named tuple", "class T(NamedTuple):\n x: int\n def g(self): return self.x + 1\nt = T(1)\ndef f(): return t.g()", "+ 1", "+ 2"),
    ("a method of a value in a set", "class C(enum.Enum):\n A = 1\n def g(self): return 5\nS = {C.A}\ndef f(): return [c.g() for c in S]", "5", "6"),
    ("a method of a key of a table", "class C(enum.Enum):\n A = 1\n def g(self): return 5\nS = {C.A: 1}\ndef f(): return [c.g() for c in S]", "5", "6"),
    ("keywords of a methodcaller", "f = operator.methodcaller('g', k=1)", "k=1", "k=2"),
    ("the name of a methodcaller with keywords", "f = operator.methodcaller('g', k=1)", "'g'", "'h'"),
    ("what a wrapper says that it wraps", "def one(x): return x\ndef two(x): return -x\ndef f(x): return f.__wrapped__(x)\nf.__wrapped__ = one", "= one", "= two"),
    ("an attribute of a function", "def f(x): return f.k\nf.k = 1", "f.k = 1", "f.k = 2"),
    ("the name that a function reads of another", "def one(): pass\ndef two(): pass\nG = one\ndef f(): return G.__name__", "G = one", "G = two"),
    ("the name of a class", "class C:\n __qualname__ = 'One'\ndef f(): return C.__qualname__", "'One'", "'Two'"),
    ("the builtins of a function", "def g(): return abs(-1)\nf = types.FunctionType(g.__code__, {'__builtins__': {'abs': lambda x: 1}})", "x: 1", "x: 2"),
    ("whether a cache tells types apart", "@functools.lru_cache(typed=False)\ndef f(x): return type(x)", "typed=False", "typed=True"),
    ("an implementation for a class", "@functools.singledispatch\ndef f(x): return 0\n@f.register(int)\ndef _(x): return 1", "return 1", "return 2"),
    ("the class that an implementation is for", "@functools.singledispatch\ndef f(x): return 0\n@f.register(int)\ndef _(x): return 1", "register(int)", "register(str)"),
    ("the order of elements in memory", "A = np.array([[1., 2.], [3., 4.]], order='C')\ndef f(): return A.ravel('K')", "order='C'", "order='F'"),
    ("whether an array can be written to", "A = np.zeros(2)\nA.flags.writeable = True\ndef f(): A[0] = 1", "= True", "= False"),
    ("the metaclass", "class M(type):\n def __call__(cls): return 1\nclass C(metaclass=M): pass\ndef f(): return C()", "return 1", "return 2"),
    ("a descriptor", "class D:\n def __get__(self, o, c): return 1\nclass C:\n d = D()\ndef f(): return C.d", "return 1", "return 2"),
    ("a conditional definition", "W = 1\nif W > 0:\n def g(): return 1\nelse:\n def g(): return 2\ndef f(): return g()", "W = 1", "W = -1"),
    ("a global that was bound anew", "def g(): return 1\ndef f(): return g()\nh = g\ndef g(): return 1\n", "\ndef g(): return 1\n", "\ndef g(): return 2\n"),
    ("a constant's type", "def f(): return 1", "1", "1.0"),
    ("a constant's type, again", "def f(): return 1", "1", "True"),
    ("a zero's sign", "def f(): return 0.0", "0.0", "-0.0"),
    ("a complex zero's sign", "def f(): return 0j", "0j", "-0j"),
    ("a constant set", "def f(x): return x in {1, 2}", "{1, 2}", "{1, 2.0}"),
    ("a long number", f"def f(): return {10**200}", f"{10**200}", f"{10**200 + 1}"),
    ("the payload of a NaN", "N = np.array([0x7ff8000000000001]).view('f8')[0].item()\ndef f(): return N", "0001]", "0002]"),
    ("whether it is a generator", "def f():\n    return 1\n    yield", "    yield", "    pass"),
    ("whether it is a coroutine", "def f(): return 1", "def f", "async def f"),
    ("the order of keyword defaults", "def f(*, a=1, b=1): return a - b", "a=1, b=1", "b=1, a=1"),
    ("whether an argument goes by position", "def f(a, b): return a - b", "(a, b)", "(a, /, b)"),
    ("what a handler covers", "def f(x):\n try:\n  y = g(x)\n  z = h(x)\n except ValueError:\n  y = z = 1\n return y, z", "  y = g(x)\n  z = h(x)\n except ValueError:\n  y = z = 1", "  y = g(x)\n except ValueError:\n  y = z = 1\n else:\n  z = h(x)"),
    ("a nested comprehension", "N = 1\ndef f(x): return [[z + N for z in y] for y in x]", "N = 1", "N = 2"),
    ("what the body of a class reads", "N = 1\ndef f():\n class C:\n  n = N\n return C.n", "N = 1", "N = 2"),
    ("an annotation that is computed", "N = 1\ndef f():\n def g(x: N): pass\n return g", "N = 1", "N = 2"),
    ("a type parameter of a container", "def f(x): return x", "x): return x", "y): return y"),
    ("options of numba", "@numba.njit(fastmath=True)\ndef f(x): return x", "=True", "=False"),
    ("options of numba in a set", "@numba.njit(fastmath={'nnan'})\ndef f(x): return x", "nnan", "ninf"),
    ("a type of a local of numba", "@numba.njit(locals={'y': numba.float32})\ndef f(x):\n y = x\n return y", "float32", "float64"),
    ("which local of numba has a type", "@numba.njit(locals={'y': numba.float32})\ndef f(x):\n y = x\n z = y\n return z", " y = x\n z = y\n return z", " z = x\n y = z\n return y"),
    ("signatures of numba", "@numba.njit('f8(f8)')\ndef f(x): return x", "f8(f8)", "f4(f8)"),
    ("a function that numba calls", "@numba.njit\ndef g(x): return x\n@numba.njit\ndef f(x): return g(x)", "return x\n", "return -x\n"),
    ("a closure of numba", "def m(k):\n @numba.njit\n def g(x): return x * k\n return g\nf = m(1.5)", "m(1.5)", "m(2.5)"),
    ("types of what is vectorized", "f = np.vectorize(lambda x: x, otypes='d')", "'d'", "'f'"),
    ("the order of a class's attributes", "class C:\n a = 1\n b = 2\ndef f(): return [v for v in C.__dict__.values() if isinstance(v, int)]", "a = 1\n b = 2", "b = 2\n a = 1"),
    ("the order of what a base collects", "class B:\n def g(s): return [v for v in type(s).__dict__.values() if isinstance(v, int)]\nclass C(B):\n a = 1\n b = 2\nc = C()\ndef f(): return c.g()", "a = 1\n b = 2", "b = 2\n a = 1"),
    ("the type of a field", "@dataclass\nclass C:\n x: int = 1\ndef f(): return dataclasses.fields(C)[0].type", "x: int", "x: float"),
    ("a part of the type of a field", "@dataclass\nclass C:\n x: list[int] = None\ndef f(): return dataclasses.fields(C)[0].type", "list[int]", "list[float]"),
    ("whether it is a field", "@dataclass(init=False, repr=False, eq=False, match_args=False)\nclass C:\n x: int = 1\ndef f(): return len(dataclasses.fields(C))", "x: int", "x: typing.ClassVar[int]"),
    ("what a protocol asks for", "@typing.runtime_checkable\nclass C(typing.Protocol):\n a: int\ndef f(x): return isinstance(x, C)", "a: int", "b: int"),
    ("an attribute of a dispatching function", "@functools.singledispatch\ndef g(x): return 0\ng.k = 1\ndef f(): return g.k", "g.k = 1", "g.k = 2"),
    ("the name of a dispatching function", "@functools.singledispatch\ndef g(x): return 0\ng.__name__ = 'one'\ndef f(): return g.__name__", "'one'", "'two'"),
    ("an attribute of a cached function", "@functools.lru_cache\ndef g(x): return 0\ng.k = 1\ndef f(): return g.k", "g.k = 1", "g.k = 2"),
    ("the name of a cached function", "@functools.lru_cache\ndef g(x): return 0\ng.__name__ = 'one'\ndef f(): return g.__name__", "'one'", "'two'"),
    ("an attribute of a static method", "class C:\n @staticmethod\n def g(): return 1\nC.__dict__['g'].k = 1\ndef f(): return C.__dict__['g'].k", ".k = 1", ".k = 2"),
    # Where it is plain to see
    ('default via functools.partial kw order', 'f = functools.partial(dict, a=1, b=2)', 'a=1, b=2', 'b=2, a=1'),
    ('closure cell shared list', 'def m(a):\n def g(): return a\n return g\nf=m([1,2])', '[1,2]', '[1,2.0]'),
    ('class with __getattr__', 'class C:\n def __getattr__(s,n): return 1\nc=C()\ndef f(): return c.x', 'return 1', 'return 2'),
    ('generic alias', 'class C:\n def __class_getitem__(c,k): return 1\ndef f(): return C[0]', 'return 1', 'return 2'),
    ('init_subclass', 'class B:\n def __init_subclass__(c): c.k=1\nclass C(B): pass\ndef f(): return C.k', 'k=1', 'k=2'),
    ('kwdefault function', 'def g(): return 1\ndef f(*, k=g): return k()', 'return 1', 'return 2'),
    ('an instance that decorates', 'class D:\n def __init__(s,fn,k): s.fn=fn; s.k=k\n def __call__(s,x): return s.fn(x)*s.k\ng=D(lambda x:x, 2)\ndef f(x): return g(x)', 'x:x, 2', 'x:x, 3'),
    ('property setter', 'class C:\n @property\n def a(s): return 1\n @a.setter\n def a(s,v): s.b=v*2\ndef f(c): C().a=c', 'v*2', 'v*3'),
    ('class attr function alias', 'def g(): return 1\nclass C:\n h=staticmethod(g)\ndef f(): return C.h()', 'return 1', 'return 2'),
    ('super in mixin', 'class A:\n def r(s): return 1\nclass M:\n def r(s): return super().r()+1\nclass C(M,A): pass\nc=C()\ndef f(): return c.r()', '+1', '+2'),
    ('bases order', 'class A:\n k=1\nclass B:\n k=2\nclass C(A,B): pass\ndef f(): return C.k', 'C(A,B)', 'C(B,A)'),
    ('bytes vs str', "def f(): return 'a'", "'a'", "b'a'"),
    ('ellipsis', 'def f(): return ...', '...', 'None'),
    ('lambda default mutable', "f = lambda x, t={'a':[1]}: t", '[1]', '[2]'),
    ('array dtype', "A=np.array([1,2],'i4')\ndef f(): return A", "'i4'", "'i8'"),
    ('array shape', 'A=np.array([1,2,3,4]).reshape(2,2)\ndef f(): return A', '(2,2)', '(4,1)'),
    ('numpy scalar type', 'A=np.float32(1)\ndef f(): return A', 'float32', 'float64'),
    ('py vs np bool', 'A=True\ndef f(): return A', 'A=True', 'A=np.True_'),
    ('slice', 'A=slice(1,2)\ndef f(x): return x[A]', 'slice(1,2)', 'slice(1,2,1)'),
    ('walrus scope', 'def f(x): return [y:=x, y]', '[y:=x, y]', '[y:=-x, y]'),
    ('del', 'def f(x):\n y=x\n del y\n return x', 'del y', 'pass'),
    ('chained compare', 'def f(x): return 1<x<2', '1<x<2', '1<x and 2<x'),
    ('star order', 'def f(a,b): return (*a,*b)', '(*a,*b)', '(*b,*a)'),
    ('dict merge order', 'def f(a,b): return {**a,**b}', '{**a,**b}', '{**b,**a}'),
    ('nonlocal vs local', 'def f():\n x=1\n def g():\n  nonlocal x\n  x=2\n g()\n return x', 'nonlocal x', 'pass'),
    ('global vs local', 'X=1\ndef f():\n global X\n X=2', 'global X', 'pass'),
    ('finally return', 'def f():\n try:\n  return 1\n finally:\n  pass', 'pass', 'return 2'),
    ('raise from', 'def f(e):\n raise ValueError from e', 'from e', 'from None'),
    ('unpack', 'def f(x):\n a,*b=x\n return b', 'a,*b', '*b,a'),
    ('with as', 'def f(x):\n with x as y: return y', 'return y', 'return x'),
    ('await', 'async def f(x): return await x', 'await x', 'x'),
    ('yield from', 'def f(x): yield from x', 'yield from x', 'yield x'),
    ('matmul', 'def f(a,b): return a@b', 'a@b', 'a*b'),
    ('inplace', 'def f(a,b):\n a+=b\n return a', 'a+=b', 'a=a+b'),
    ('is None', 'def f(a): return a is None', 'is None', 'is not None'),
    ('annotation only class', '@dataclass\nclass C:\n x: int=1\n y: int=1\ndef f(): return C(2)', 'x: int=1\n y', 'y: int=1\n x'),
    ('dataclass order', '@dataclass(order=False)\nclass C:\n x: int=1\ndef f(): return C(2)<C(1)', 'order=False', 'order=True'),
    ('frozen', '@dataclass(frozen=False)\nclass C:\n x: int=1\ndef f(): C(2).x=1', 'frozen=False', 'frozen=True'),
    ('eq=False', '@dataclass(eq=True)\nclass C:\n x: int=1\ndef f(): return C(2)==C(2)', 'eq=True', 'eq=False'),
    ('kw_only', '@dataclass\nclass C:\n x: int=field(default=1,kw_only=False)\ndef f(): return C(2)', '=False', '=True'),
    ('enum auto start', 'class C(enum.Enum):\n A=enum.auto()\n B=enum.auto()\ndef f(): return C.A', 'A=enum.auto()\n B', 'B=enum.auto()\n A'),
    ('flag boundary', 'class C(enum.Flag, boundary=enum.STRICT):\n A=1\ndef f(): return C(4)', 'STRICT', 'KEEP'),
    ('IntEnum vs Enum', 'class C(enum.IntEnum):\n A=1\ndef f(): return C.A', 'IntEnum', 'Enum'),
    ('missing', 'class C(enum.Enum):\n A=1\n @classmethod\n def _missing_(c,v): return c.A\ndef f(): return C(3)', 'return c.A', 'return None'),
    ('namedtuple default', "T=collections.namedtuple('T','a b',defaults=[1])\ndef f(): return T(0)", '[1]', '[2]'),
    ('namedtuple fields', "T=collections.namedtuple('T','a b')\ndef f(): return T(0,1).a", "'a b'", "'b a'"),
    ('total_ordering', '@functools.total_ordering\nclass C:\n def __eq__(s,o): return True\n def __lt__(s,o): return True\ndef f(): return C()<=C()', '__lt__(s,o): return True', '__lt__(s,o): return False'),
    ('object with slots dict', "class C:\n __slots__=('a','__dict__')\nc=C(); c.a=1; c.z=2\ndef f(): return c.z", 'c.z=2', 'c.z=3'),
    ('instance overriding method', 'class C:\n def g(s): return 1\nc=C()\nc.g=lambda: 2\ndef f(): return c.g()', 'lambda: 2', 'lambda: 3'),
    ('exception class', 'class E(Exception):\n k=1\ndef f(): raise E', 'k=1', 'k=2'),
    ('module attr chain', "m=types.ModuleType('m'); m.n=types.ModuleType('n'); m.n.k=1\ndef f(): return m.n.k", 'k=1', 'k=2'),
    ('range', 'R=range(3)\ndef f(): return R', 'range(3)', 'range(4)'),
    ('typing cast', 'import typing\ndef f(x): return typing.cast(int,x)+1', '+1', '+2'),
    ('ABC abstract prop', 'class C(abc.ABC):\n @property\n @abc.abstractmethod\n def a(s): return 1\ndef f(): return C', 'return 1', 'return 2'),
    ('np.vectorize sig', "f=np.vectorize(lambda x:x,signature='(n)->(n)')", "'(n)->(n)'", "'(n)->()'"),
    ('np.vectorize excluded', "f=np.vectorize(lambda x,y:x,excluded=['y'])", "['y']", "['x']"),
]  # fmt: skip


def _made(source: str) -> Any:
    space: dict[str, Any] = {"__name__": "hidden"}
    exec(compile(PRELUDE + source, "hidden", "exec", dont_inherit=True), space)
    return space["f"]


@pytest.mark.parametrize("pair", PAIRS, ids=[pair[0] for pair in PAIRS])
def test_a_difference_in(pair: tuple[str, str, str, str]) -> None:
    _, source, old, new = pair
    assert old in source
    before = fingerprint(_made(source))
    assert fingerprint(_made(source)) == before
    assert fingerprint(_made(source.replace(old, new, 1))) != before


REFUSED = {
    "eval under another name": "e = eval\ndef f(x): return e(x)",
    "builtins as a whole": "import builtins\ndef f(x): return getattr(builtins, x)",
    "a module by its name": "def f(x): return importlib.import_module(x)",
    "import_module by itself": "from importlib import import_module\ndef f(x): return import_module(x)",
    "import_module where it is called": "def f(x):\n from importlib import import_module\n return import_module(x)",
    "all modules": "def f(x): return sys.modules[x]",
    "all modules, from an import where it is used": "def f(x):\n import sys\n return sys.modules[x]",
    "frames": "def f(): return sys._getframe(1)",
    "globals of another function": "def g(): pass\ndef f(x): return g.__globals__[x]",
    "a docstring": "def g(): 'one'\ndef f(): return g.__doc__",
    "the parameters of a generic base": "T = typing.TypeVar('T')\nclass B(typing.Generic[T]): pass\nclass C(B[int]): pass\ndef f(): return C.__orig_bases__",
    "a docstring, by its name": "def g(): 'one'\ndef f(): return getattr(g, '__doc__')",
    "a docstring, by a getter": "def g(): 'one'\nt = operator.attrgetter('__doc__')\ndef f(): return t(g)",
    "a docstring, by inspect": "import inspect\ndef g(): 'one'\ndef f(): return inspect.getdoc(g)",
    "type hints": "class C:\n x: int = 1\ndef f(): return typing.get_type_hints(C)",
    "an annotation of a parameter": "import inspect\ndef g(x: int): pass\ndef f(): return inspect.signature(g).parameters['x'].annotation",
    "the number of a line": "class C: pass\ndef f(): return C.__firstlineno__",
    "annotations": "def g(x: 1): pass\ndef f(): return g.__annotations__",
    "a generator that runs": "g = (x for x in [1])\ndef f(): return next(g)",
    "a state of random numbers": "R = np.random.default_rng(1)\ndef f(): return R.normal()",
    "a ufunc of a Python function": "g = np.frompyfunc(lambda x: x, 1, 1)\ndef f(x): return g(x)",
    "a ufunc of numba": "@numba.vectorize\ndef g(x): return x\ndef f(x): return g(x)",
    "a subclass of dict": "D = collections.OrderedDict(a=1)\ndef f(): return D",
    "what raises when it is looked at": "class M(types.ModuleType):\n def __getattr__(s, n): raise OSError\nm = M('m')\ndef f(): return m.x",
    "another name of a slot": "class B:\n __slots__ = ('x', 'y')\nclass C(B):\n z = B.x\nc = C(); c.x = 1; c.y = 2\ndef f(): return c.z",
    "a lock": "import threading\nL = threading.Lock()\ndef f():\n with L: pass",
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    with pytest.raises(Unfingerprintable):
        fingerprint(_made(REFUSED[what]))


# Names that hide others


def test_a_function_put_in_the_place_of_a_releases_is_not_taken_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def use(x: Any) -> Any:
        return np.linalg.cond(x), np.vander(x), statistics.mean(x)

    before = fingerprint(use)
    for module, name in ((np.linalg, "cond"), (np, "vander"), (statistics, "mean")):
        original = getattr(module, name)
        found = set()
        for by in (1, 2):

            @functools.wraps(original)
            def replaced(x: Any, original: Callable[..., Any] = original, by: int = by) -> Any:
                return original(x) * by

            monkeypatch.setattr(module, name, replaced)
            found.add(fingerprint(use))
        monkeypatch.undo()
        assert len(found | {before}) == 3


def test_what_a_script_puts_into_a_release_is_followed_where_a_function_imports_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def use(x: Any) -> Any:
        from numpy.linalg import cond

        return cond(x)

    def times(by: float, x: Any) -> Any:
        return x * by

    class Caller:
        def __call__(self, x: Any) -> Any:
            return x

    found = [fingerprint(use)]
    for put in (
        functools.partial(times, 1),
        functools.partial(times, 2),
        Caller,
        Caller(),
        numba.njit(times),
    ):
        monkeypatch.setattr(np.linalg, "cond", put)
        found.append(fingerprint(use))
    assert len(set(found)) == 6


def test_attributes_in_another_order_are_the_same_class_if_no_code_asks() -> None:
    sources = (
        "class C:\n a = 1\n b = 2\ndef f(): return C.a",
        "class C:\n b = 2\n a = 1\ndef f(): return C.a",
    )
    assert len({fingerprint(_made(source)) for source in sources}) == 1


def test_a_class_derived_from_a_release_is_followed(tmp_path: Path) -> None:
    found = {
        fingerprint(type("Poly", (np.polynomial.Polynomial,), {"k": k, "__module__": "numpy"}))
        for k in (1, 2)
    }
    assert len(found) == 2


SHADOWING = """
import sys
import statistics
from cachegraph.fingerprint import encode
from cachegraph.fingerprint.origin import origin_of
print(origin_of("statistics", ()), origin_of("json", ()), origin_of("numpy", ()), encode(statistics.mean).hex())
"""


def test_a_script_that_hides_a_module_of_python_is_followed(tmp_path: Path) -> None:
    printed = []
    for constant in (1, 2):
        (tmp_path / "statistics.py").write_text(f"def mean(x):\n    return x + {constant}\n")
        arguments = [sys.executable, "-c", SHADOWING]
        environment = {
            "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[3]}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            arguments, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        printed.append(done.stdout.split())
    assert [row[:3] for row in printed] == [["followed", "python", "release"]] * 2
    assert printed[0][3] != printed[1][3]


def test_a_module_that_is_not_loaded_yet_is_known_by_its_release() -> None:
    code = (
        "from cachegraph.fingerprint import fingerprint\n"
        "import sys\n"
        "def f(x):\n import scipy.special\n from scipy.special import erf\n return erf(x)\n"
        "one = fingerprint(f)\n"
        "assert 'scipy' not in sys.modules\n"
        "import scipy.special\n"
        "assert fingerprint(f) == one\n"
    )
    environment = {"PYTHONPATH": str(Path(__file__).parents[3])}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_a_build_of_a_directory_is_known_by_its_files_too(tmp_path: Path) -> None:
    from cachegraph.fingerprint.releases import recorded_files

    found = []
    for number, record in enumerate(("mine.py,sha256=a,1\n", "mine.py,sha256=b,1\n", "mine.py,sha256=b,1\n")):
        place = tmp_path / str(number)
        information = place / "mine-1.0.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
        (information / "RECORD").write_text(record + f"mine-1.0.dist-info/REQUESTED,sha256={number},0\n")
        (information / "direct_url.json").write_text("{}")
        sys.path.insert(0, str(place))
        importlib.invalidate_caches()
        try:
            found.append(recorded_files("mine"))
        finally:
            sys.path.remove(str(place))
    assert found[0] != found[1] == found[2] != ""
    assert recorded_files("xxhash") == ""


def test_a_dispatcher_reached_by_code_is_what_it_compiles() -> None:
    def make(by: float) -> Any:
        @numba.njit
        def inner(x: float) -> float:
            return x * by

        return lambda x: inner(x)

    assert fingerprint(make(1.5)) == fingerprint(make(1.5)) != fingerprint(make(2.5))


def test_what_numba_calls_for_a_function_in_python_is_what_is_registered_for_it() -> None:
    def other(x: float) -> float:
        return x

    space = {"numba": numba, "other": other, "__name__": "hidden"}
    exec("@numba.njit\ndef f(x): return other(x)", space)
    found = [fingerprint(space["f"]), fingerprint(space["f"])]
    for by in (1, 2):
        numba.extending.overload(other)(lambda x, by=by: lambda x: x + by)
        found.append(fingerprint(space["f"]))
    assert found[0] == found[1]
    assert len(set(found)) == 3


def test_a_native_object_that_a_script_makes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType("made_here")
    module.__file__ = str(tmp_path / "made_here.py")
    module.STATE = np.random.PCG64(1)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "made_here", module)
    with pytest.raises(Unfingerprintable):
        fingerprint(module.STATE.random_raw)
