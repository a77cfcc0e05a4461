"""Rewriters as plain values, which marshal writes: each key describes six hundred of them.

    rewriter := ('R', origin, module, name)               held by a module of a release under that name
              | marshal(value)
    value    := None | bool | int | float | complex | str | bytes
              | ('T' | 'L', value*)                       a tuple, a list
              | ('J', class, (name, value)*)              another object of a released class: its attributes
              | ('C', class)                              a released class
              | ('Q')                                     an empty frozendict
              | ('O', op) | ('E', value)                  bytes as in values.py: an Op, and anything else
    class, origin := bytes                                as in values.py

What these have in common with values.py is what is identity (attributes.py) and what describes an Op, a
class and code. Released objects are most of what a database has, and are written ten times as fast here.
"""

from __future__ import annotations

import marshal
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from pytensor.graph.rewriting.basic import FromFunctionNodeRewriter
from pytensor.misc.frozendict import frozendict

from cachegraph.errors import Unfingerprintable
from cachegraph.pytensor.describe.attributes import name_of, state_of
from cachegraph.pytensor.describe.values import (
    EncodingContext,
    encode_value,
    is_class_of_release,
    is_object_of_release,
    is_op_class,
    is_op_of_release,
    is_released,
    release_row_of_module,
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
        """Ops and functions that several rewriters hold, each with its plain value, by id."""
        self._writers: dict[type, Callable[[PlainRewriters, Any], object]] = {}

    def plain(self, rewriter: Any) -> object:
        """Return `rewriter` as a plain value, cached unless its code may change; raises Unfingerprintable."""
        name = _name_in_release(rewriter, self._context)
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
        if is_op_class(cls) or cls is FunctionType:
            return PlainRewriters._once
        if cls is FromFunctionNodeRewriter:
            return PlainRewriters._named
        if issubclass(cls, type):
            return PlainRewriters._class
        if cls is frozendict:
            return PlainRewriters._frozendict
        is_plain = is_object_of_release(cls, self._context.described)
        return PlainRewriters._object if is_plain else PlainRewriters._encoded

    def _named(self, rewriter: Any) -> object:
        return _name_in_release(rewriter, self._context) or self._encoded(rewriter)

    def _frozendict(self, value: Any) -> object:
        return self._encoded(value) if value else ("Q",)

    def _class(self, cls: type) -> object:
        if is_class_of_release(cls, self._context.described):
            return "C", self._context.class_row(cls)
        return self._encoded(cls)

    def _once(self, value: Any) -> object:
        """Return the plain value of an Op or a function, found once unless its code may change."""
        known = self._shared.get(id(value))
        if known is not None:
            return known[1]
        context = self._context
        code, foreign = context.code, context.foreign
        found = self._object(value) if is_op_of_release(value, context.described) else self._encoded(value)
        if (context.code, context.foreign) == (code, foreign):
            self._shared[id(value)] = value, found
        return found

    def _encoded(self, value: Any) -> object:
        if is_op_class(type(value)):
            return "O", self._context.op(value)
        return "E", encode_value(value, self._context)

    def _object(self, value: Any) -> object:
        state = state_of(value)
        try:
            attributes = [
                (name, item if type(item) in _SCALARS else self._value(item))
                for name, item in sorted(state.items())
            ]
        except Unfingerprintable as error:
            error.inside(f"an attribute of a {type(value).__qualname__}")
            raise
        return "J", self._context.class_row(type(value)), *attributes


def _name_in_release(rewriter: Any, context: EncodingContext) -> tuple[str, bytes, str, str] | None:
    """Return the name under which a module of a release holds a rewriter made of a function of its own."""
    if type(rewriter) is not FromFunctionNodeRewriter:
        return None
    function = rewriter.fn
    if type(function) is not FunctionType:
        return None
    module, name = function.__module__, function.__name__
    if not is_released(function, context.described) or vars(sys.modules[module]).get(name) is not rewriter:
        return None
    return "R", release_row_of_module(module, context.described), module, name
