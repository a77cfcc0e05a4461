"""Names that import: whether a module and a qualified name give back the object that claims them."""

from __future__ import annotations

import sys
from collections.abc import Collection
from types import FunctionType

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.origin import origin_of

SCRIPTS = ("__main__", "__mp_main__")
"""Modules that are another thing in every process."""


def imported(module: object, qualname: object) -> object:
    """What `qualname` of the loaded module `module` is, None if there is nothing."""
    space = sys.modules.get(module) if isinstance(module, str) else None
    if space is None or not isinstance(qualname, str):
        return None
    first, *others = qualname.split(".")
    found = vars(space).get(first)  # and not what a module makes up when it is asked
    for name in others:
        found = getattr(found, name, None)
    return found


def is_importable(value: object) -> bool:
    """Whether another process that imports `value`, or the method that it is the function of, by its name gets the same thing."""
    module = getattr(value, "__module__", None)
    if module in SCRIPTS:
        return False
    found = imported(module, getattr(value, "__qualname__", None))
    return found is value or (found is not None and getattr(found, "__func__", None) is value)


def is_known_by_name(value: FunctionType, described: Collection[str]) -> bool:
    """Whether a function is what its name says: that imports it, and neither the module nor the one that holds its code
    is followed. What somebody puts in the place of a function, and gives its name to, is not."""
    module, home = value.__module__, value.__globals__.get("__name__")
    if not isinstance(module, str) or not is_importable(value) or origin_of(module, described) == "followed":
        return False
    return not isinstance(home, str) or home == module or origin_of(home, described) != "followed"


def importable_name(cls: type) -> tuple[str, str]:
    """Return the module and qualified name that import `cls`; raises Unfingerprintable if they would not give it."""
    module, qualname = cls.__module__, cls.__qualname__
    if module in SCRIPTS:
        raise Unfingerprintable(
            f"class {module}.{qualname}", "another script's __main__ differs; move it to a module"
        )
    if imported(module, qualname) is not cls:
        raise Unfingerprintable(
            f"class {module}.{qualname}",
            "that name does not import it; define it at the top level of a module",
        )
    return module, qualname
