"""The pickling of values, with errors that say what could not be pickled, and where it is."""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence

from cachegraph.pickling.errors import Unpicklable
from cachegraph.pickling.pickler import NameOf, Pickler, Refused


def dumps(
    value: object,
    external: Sequence[object] = (),
    name_of: NameOf | None = None,
    blobs: dict[str, bytes] | None = None,
    by_value: bool = False,
) -> bytes:
    """Return `value` pickled: `external` objects by number, objects with a `name_of` by name, functions by
    import path.

    With `blobs`, the content of larger arrays (LARGE) is added there, name -> bytes, and the pickle holds the
    digests: store both in one Artifact. With `by_value`, functions and classes that no name imports (of
    `__main__`, lambdas, closures) are pickled as code; such a pickle loads only if everything is trusted.
    Raises Unpicklable, which names the offending object and its path in `value`; and what `name_of` raises.
    """
    return _dump(_pickler_class(by_value), value, external, name_of, blobs)[0]


def import_paths(
    value: object, external: Sequence[object] = (), name_of: NameOf | None = None
) -> frozenset[tuple[str, str]]:
    """Return the import paths that a pickle of `value` names, to be declared to `loads`.

    Raises Unpicklable as dumps does.
    """
    return frozenset(_dump(Pickler, value, external, name_of, {})[1])


def _dump(
    cls: type[Pickler],
    value: object,
    external: Sequence[object],
    name_of: NameOf | None,
    blobs: dict[str, bytes] | None,
) -> tuple[bytes, set[tuple[str, str]]]:
    file = io.BytesIO()
    pickler = cls(file, external, name_of, blobs)
    try:
        pickler.dump(value)
    except Refused as refused:
        from cachegraph.pickling.value_paths import path_within  # needed only for errors

        raise Unpicklable(
            refused.found, refused.advice, path_within(value, refused.item)
        ) from refused.__cause__
    except (pickle.PicklingError, RecursionError) as error:
        raise Unpicklable(f"what pickle refuses ({error})", "pass plainer values") from error
    return file.getvalue(), pickler.paths


def _pickler_class(by_value: bool) -> type[Pickler]:
    if not by_value:
        return Pickler
    from cachegraph.pickling.by_value import ByValuePickler  # imports cloudpickle, which few need

    return ByValuePickler
