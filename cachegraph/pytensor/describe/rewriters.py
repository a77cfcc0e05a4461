"""Rewriters as plain values, which marshal writes: each key describes six hundred of them.

    rewriter := ('R', module, name)                       held by a module of a host's release under that name
              | marshal(value)
    value    := None | bool | int | float | complex | str | bytes
              | ('T' | 'L', value*)                       a tuple, a list
              | ('J', class, name*, value*)               another object of a released class: its attributes
              | ('N', value, value*)                      a pattern: of an Op, and of its inputs
              | ('X', value, value)                       a variable in a pattern, and its condition
              | ('C', class)                              a released class
              | ('Q') | ('D')                             an empty frozendict, an empty dict
              | ('P', function, arguments, name*, value*)  a partial without attributes
              | ('O', op) | ('E', value)                  bytes as in values.py: an Op, and anything else
    class    := (module, qualname) | bytes                of a host, and as in values.py of another package
    origins  := (host, origin)*                           of the hosts that are loaded, bytes as in values.py

What these have in common with values.py is what is identity (attributes.py) and what describes an Op, a
class and code. Released objects are most of what a database has, and are written ten times as fast here.
"""

from __future__ import annotations

import marshal
import sys
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from pytensor.graph.rewriting.basic import FromFunctionNodeRewriter
from pytensor.graph.rewriting.unify import PatternNode, PatternVar
from pytensor.misc.frozendict import frozendict

from cachegraph.errors import Unfingerprintable
from cachegraph.pytensor.describe.attributes import attributes_of, is_of_host, name_of, state_of
from cachegraph.pytensor.describe.host_packages import HOST_PACKAGES
from cachegraph.pytensor.describe.values import (
    EncodingContext,
    encode_value,
    is_class_of_release,
    is_object_of_release,
    is_op_class,
    is_released,
    release_row_of_module,
    space_of_release,
)

_SCALARS = frozenset((type(None), bool, int, float, complex, str, bytes))

WITHOUT_REFERENCES = 2
"""The version of marshal's format in which equal values have equal bytes."""

_known: WeakKeyDictionary[Any, tuple[bytes, int]] = WeakKeyDictionary()
"""Rewriters without code that may change, as bytes, and how often code of others occurred in them.

As values they would be six thousand objects, which the collector of garbage looks at.
"""


class PlainRewriters:
    """The plain values of rewriters for one key."""

    def __init__(self, context: EncodingContext) -> None:
        self._context = context
        self._shared: dict[int, tuple[object, object]] = {}
        """Functions that several rewriters hold, each with its plain value, by id."""
        self._writers: dict[type, Callable[[PlainRewriters, Any], object]] = {}
        self._outlines: dict[type, tuple[object, frozenset[str], tuple[str, ...]]] = {}
        """Classes of hosts as plain values, with the attributes that are not identity, and the slots."""
        self._spaces: dict[str, dict[str, Any] | None] = {}
        """The names of modules of hosts' releases, None of other modules."""

    def origins(self) -> object:
        """Return which release, or source, the names of the hosts' modules stand for."""
        loaded = [host for host in HOST_PACKAGES if host in sys.modules]
        return tuple([(host, release_row_of_module(host, self._context.described)) for host in loaded])

    def plain(self, rewriter: Any) -> object:
        """Return `rewriter` as a plain value, cached unless its code may change; raises Unfingerprintable."""
        if type(rewriter) is FromFunctionNodeRewriter:
            name = self._name_in_release(rewriter)
            if name is not None:
                return name
        context = self._context
        known = _known.get(rewriter)
        if known is not None:
            context.foreign += known[1]
            return known[0]
        code, foreign = context.code, context.foreign
        try:
            value = marshal.dumps(self._value(rewriter), WITHOUT_REFERENCES)
        except RecursionError:
            raise Unfingerprintable(
                name_of(type(rewriter)), "it contains itself, or is nested too deeply"
            ) from None
        if context.code == code:
            _known[rewriter] = value, context.foreign - foreign
        else:
            context.rewriters.append(rewriter)
        return value

    def parameters(self, values: dict[str, object]) -> object:
        """Return the parameters of a database as a plain value; raises Unfingerprintable."""
        return tuple([(name, self._value(values[name])) for name in sorted(values)])

    def _value(self, value: Any) -> Any:
        cls: type = type(value)
        if cls in _SCALARS:
            return value
        if cls is tuple or cls is list:
            return ("T" if cls is tuple else "L", *map(self._value, value))
        write = self._writers.get(cls)
        if write is None:
            write = self._writers[cls] = self._writer_of(cls)
        return write(self, value)

    def _writer_of(self, cls: type) -> Callable[[PlainRewriters, Any], object]:
        """Return the method that makes instances of a class plain values."""
        if is_op_class(cls):
            return PlainRewriters._op
        if cls is FunctionType:
            return PlainRewriters._function
        if cls is FromFunctionNodeRewriter:
            return PlainRewriters._named
        if issubclass(cls, type):
            return PlainRewriters._class
        if cls is frozendict or cls is dict:
            return PlainRewriters._mapping
        if cls is partial:
            return PlainRewriters._partial
        if not is_object_of_release(cls, self._context.described):
            return PlainRewriters._encoded
        return _PATTERNS.get(cls, PlainRewriters._object)

    def _named(self, rewriter: Any) -> object:
        return self._name_in_release(rewriter) or self._encoded(rewriter)

    def _name_in_release(self, rewriter: Any) -> tuple[str, str, str] | None:
        """Return the name under which a module of a release holds a rewriter of a function of its own."""
        function = rewriter.fn
        if type(function) is not FunctionType:
            return None
        module, name = function.__module__, function.__name__
        if module not in self._spaces:
            self._spaces[module] = space_of_release(module, self._context.described)
        space = self._spaces[module]
        if space is None or space.get(name) is not rewriter:
            return None
        is_own = function.__globals__ is space or is_released(function, self._context.described)
        return ("R", module, name) if is_own else None

    def _mapping(self, value: Any) -> object:
        if value:
            return self._encoded(value)
        return ("Q",) if type(value) is frozendict else ("D",)

    def _partial(self, value: Any) -> object:
        if vars(value):
            return self._encoded(value)
        keywords = value.keywords
        names = sorted(keywords)
        return (
            "P",
            self._value(value.func),
            self._value(value.args),
            *names,
            *map(self._value, map(keywords.__getitem__, names)),
        )

    def _pattern(self, pattern: Any) -> object:
        return "N", self._value(pattern.op_match), *map(self._value, pattern.inputs)

    def _variable(self, variable: Any) -> object:
        return "X", self._value(variable.token), self._value(variable.constraint)

    def _class(self, cls: type) -> object:
        if is_class_of_release(cls, self._context.described):
            return "C", self._row(cls)
        return self._encoded(cls)

    def _row(self, cls: type) -> object:
        if not is_of_host(cls):
            return self._context.class_row(cls)
        self._context.modules.add(cls.__module__)
        return cls.__module__, cls.__qualname__

    def _op(self, op: Any) -> object:
        return "O", self._context.op(op)

    def _function(self, function: Any) -> object:
        """Return the plain value of a function, found once unless its code may change."""
        known = self._shared.get(id(function))
        if known is not None:
            return known[1]
        context = self._context
        code, foreign = context.code, context.foreign
        found = self._encoded(function)
        if (context.code, context.foreign) == (code, foreign):
            self._shared[id(function)] = function, found
        return found

    def _encoded(self, value: Any) -> object:
        return "E", encode_value(value, self._context)

    def _object(self, value: Any) -> object:
        cls = type(value)
        row, left_out, slots = self._outlines.get(cls) or self._outline(cls)
        state = state_of(value) if slots else getattr(value, "__dict__", {})
        names = [name for name in sorted(state) if name not in left_out]
        try:
            items = [
                item if type(item) in _SCALARS else self._value(item)
                for item in map(state.__getitem__, names)
            ]
        except Unfingerprintable as error:
            error.inside(f"an attribute of a {cls.__qualname__}")
            raise
        return "J", row, *names, *items

    def _outline(self, cls: type) -> tuple[object, frozenset[str], tuple[str, ...]]:
        found = self._row(cls), *attributes_of(cls)
        if is_of_host(cls):  # each class of others counts where it occurs
            self._outlines[cls] = found
        return found


_PATTERNS = {PatternNode: PlainRewriters._pattern, PatternVar: PlainRewriters._variable}
"""The parts of patterns, of which a database has two hundred; each has slots for no more."""
