"""Names that import: whether a module and a qualified name give back the object that claims them."""

from __future__ import annotations

import sys

from cachegraph.errors import Unfingerprintable

_SCRIPTS = ("__main__", "__mp_main__")


def imported(module: object, qualname: object) -> object:
    """What `qualname` of the loaded module `module` is, None if there is nothing."""
    found: object = sys.modules.get(module) if isinstance(module, str) else None
    if found is None or not isinstance(qualname, str):
        return None
    for name in qualname.split("."):
        found = getattr(found, name, None)
    return found


def is_importable(value: object) -> bool:
    """Whether another process that imports `value`, or the method that it is the function of, by its name gets the same thing."""
    module = getattr(value, "__module__", None)
    if module in _SCRIPTS:
        return False
    found = imported(module, getattr(value, "__qualname__", None))
    return found is value or (found is not None and getattr(found, "__func__", None) is value)


def importable_name(cls: type) -> tuple[str, str]:
    """Return the module and qualified name that import `cls`; raises Unfingerprintable if they would not give it."""
    module, qualname = cls.__module__, cls.__qualname__
    if module in _SCRIPTS:
        raise Unfingerprintable(
            f"class {module}.{qualname}", "another script's __main__ differs; move it to a module"
        )
    if imported(module, qualname) is not cls:
        raise Unfingerprintable(
            f"class {module}.{qualname}",
            "that name does not import it; define it at the top level of a module",
        )
    return module, qualname
