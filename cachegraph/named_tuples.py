"""`NamedTuple`, as in `typing`, but cheap to define.

To a type checker it is `typing.NamedTuple`, and its classes have the same attributes and behaviour. But
`typing.NamedTuple` compiles a constructor and each annotation whenever a class is defined, which takes
0.3 ms: sixty such classes were a quarter of `import engine`. The classes of this one share a constructor
and leave their annotations as they are, which takes 0.01 ms (decision 0097).

The module of such a class must start with `from __future__ import annotations`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple  # noqa: TID251
else:
    from collections import _tuplegetter

    def _new(cls, /, *values, **named):
        if named or len(values) != len(cls._fields):
            values = _completed(cls, values, named)
        return tuple.__new__(cls, values)

    def _completed(cls, values, named):
        """Return `values`, and for each other field the value of that name or its default."""
        missing, defaults = cls._fields[len(values) :], cls._field_defaults
        given = {**defaults, **named}
        if len(values) > len(cls._fields) or not named.keys() <= set(missing) <= given.keys():
            raise TypeError(
                f"making a {cls.__name__}: {len(values)} values and the names {list(named)} were given; "
                f"its fields are {', '.join(cls._fields)}, with defaults for {list(defaults)}"
            )
        return (*values, *[given[field] for field in missing])

    def _make(cls, values):
        """Return the tuple of `values`, one for each field."""
        made = tuple.__new__(cls, values)
        return made if len(made) == len(cls._fields) else cls(*made)  # which refuses

    def _replace(self, /, **changes):
        """Return a copy with other values in the named fields."""
        return self._make(_completed(type(self), (), {**self._asdict(), **changes}))

    def _asdict(self):
        """Return the value of each field by its name."""
        return dict(zip(self._fields, self, strict=True))

    def _repr(self):
        shown = ", ".join(f"{field}={value!r}" for field, value in self._asdict().items())
        return f"{type(self).__name__}({shown})"

    def _getnewargs(self):
        return tuple(self)

    _SHARED = {
        "__new__": _new,
        "_make": classmethod(_make),
        "_replace": _replace,
        "_asdict": _asdict,
        "__repr__": _repr,
        "__getnewargs__": _getnewargs,
        "__slots__": (),
    }

    class _NamedTupleType(type):
        """The type of `NamedTuple` alone: classes derived from it are ordinary subclasses of tuple."""

        def __new__(cls, name, bases, namespace):
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            fields = tuple(namespace["__annotations__"])
            getters = {field: _tuplegetter(position, "") for position, field in enumerate(fields)}
            defaults = {field: namespace[field] for field in fields if field in namespace}
            names = {"_fields": fields, "__match_args__": fields, "_field_defaults": defaults}
            others = [base for base in bases if base is not NamedTuple]
            return type(name, (tuple, *others), {**_SHARED, **namespace, **getters, **names})

    class NamedTuple(metaclass=_NamedTupleType):
        """Base of named tuples: each annotated name is a field, its value in the class is its default."""
