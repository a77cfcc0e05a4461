"""The picklers: which objects they write, and which they name. The format is in
cachegraph/pickling/__init__.py."""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Callable, Sequence
from types import FunctionType, ModuleType
from typing import Any

from cachegraph.fingerprint.origin import imported
from cachegraph.pickling.large_arrays import LARGE, add_blob

_OPEN_ENDED = "make it an attribute of a module that can be imported, or call it through a Python function"
_BY_VALUE = "define it at the top level of a module; or pass by_value=True, which pickles its code"


NameOf = Callable[[object], str | None]
"""Returns the name of an object that the reader of the pickle has at hand, None for any other."""


class Refused(Exception):
    """The refusal to pickle `item`."""

    def __init__(self, item: object, found: str, advice: str) -> None:
        super().__init__(item, found, advice)
        self.item = item
        self.found = found
        self.advice = advice


class Pickler(pickle.Pickler):
    """A pickler of external objects by number, of objects at hand by name, and of functions by import path.

    It collects the import paths in `paths`, and adds the content of large arrays to `blobs`, if given. A
    function that an object's `__reduce__` returns, to be called on loading, is pickled as pickle does: it is
    no value, and the reader decides whether it may be called.
    """

    def __init__(
        self,
        file: io.BytesIO,
        external: Sequence[object],
        name_of: NameOf | None = None,
        blobs: dict[str, bytes] | None = None,
    ) -> None:
        super().__init__(file, protocol=5)
        self._name_of = name_of
        self._blobs = blobs
        self.paths: set[tuple[str, str]] = set()
        self._numbers = {id(item): number for number, item in enumerate(external)}
        # By id, and kept alive: an id must not be used twice.
        self._rebuilders: dict[int, object] = {}

    def persistent_id(self, obj: Any) -> object:
        """Return what stands for an external object, a function or the content of a large array; None for
        others."""
        if isinstance(obj, pickle.PickleBuffer):
            return self._blob(obj)
        name: int | str | None = self._numbers.get(id(obj))
        if name is None and self._name_of is not None:
            name = self._name_of(obj)
        if name is not None or id(obj) in self._rebuilders or not callable(obj) or isinstance(obj, type):
            return name
        from cachegraph.pickling.import_path import (  # imports the search for native functions
            is_function,
            path_of,
        )

        if not is_function(obj):
            return None
        path = path_of(obj)
        if path is None:
            self.check_unnamed(obj)
            return None
        self.paths.add((path.module, path.place))
        return ("import", *path)

    def _blob(self, buffer: pickle.PickleBuffer) -> tuple[str, str, bool] | None:
        """Return what stands for the content of a large array, stored as a blob; None if the pickle is to
        hold it."""
        try:
            content = buffer.raw()
        except BufferError:  # not contiguous: pickle raises an error that says so
            return None
        if self._blobs is None or content.nbytes <= LARGE:
            return None
        return "blob", add_blob(self._blobs, content.tobytes()), content.readonly

    def check_unnamed(self, function: Any) -> None:
        """Refuse a function without an import path; subclasses may pickle some in another way."""
        name = f"{type(function).__name__} {getattr(function, '__qualname__', '')}".rstrip()
        advice = _BY_VALUE if isinstance(function, FunctionType) else _OPEN_ENDED
        raise Refused(
            function, f"{name} of {getattr(function, '__module__', None)}, which no name imports", advice
        )

    def reducer_override(self, obj: Any) -> Any:
        """Return pickle's reduction of `obj`, and remember which functions it calls."""
        if isinstance(obj, type | FunctionType):
            return self.by_name(obj)
        reduced = self._reduction(obj)
        if isinstance(reduced, tuple):
            self.calls(reduced)
        return reduced

    def by_name(self, obj: Any) -> Any:
        """Return the reduction of a class, or of a function that an object has called: its name, if that
        imports it."""
        if imported(obj.__module__, obj.__qualname__) is obj:
            return NotImplemented
        name = f"{obj.__module__}.{obj.__qualname__}"
        raise Refused(obj, f"{type(obj).__name__} {name}, which that name does not import", _BY_VALUE)

    def calls(self, reduced: tuple[Any, ...]) -> None:
        """Remember the functions that a reduction calls."""
        for function in (reduced[0], *reduced[5:6]):
            self._rebuilders[id(function)] = function

    def _reduction(self, obj: Any) -> Any:
        if self._blobs is not None and f"{type(obj).__module__}.{type(obj).__qualname__}" == "numpy.ndarray":
            obj = obj if obj.flags.forc else obj.copy()  # only contiguous arrays have a buffer
        reduce = getattr(self, "dispatch_table", copyreg.dispatch_table).get(type(obj))
        try:
            return obj.__reduce_ex__(5) if reduce is None else reduce(obj)
        except Refused:
            raise
        except Exception as error:  # its class may raise anything
            advice = "use plain values or numpy arrays, or make it when it is needed"
            if isinstance(obj, ModuleType):
                advice = "refer to what is needed of the module"
            raise Refused(
                obj, f"{type(obj).__module__}.{type(obj).__qualname__} ({error})", advice
            ) from error
