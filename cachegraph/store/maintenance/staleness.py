"""Stale entries: those of another release, which no look-up here and now finds.

An application says of its own entries, those of its namespace, which are stale: by a function that an entry
point of the group "cachegraph.revalidators" names, as in `toyc = "toyc.cache:is_current"`. It gets the level
without the namespace and the parts of the key (name -> canonical encoding), and returns True if the entry can
still be found. Without such a function none of them is stale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from cachegraph.errors import InvalidEncoding
from cachegraph.fingerprint.encoding import encode
from cachegraph.key import CacheKey, expanded, namespace_of
from cachegraph.logger import logger
from cachegraph.store.record import RECORD_FORMAT
from cachegraph.toolchain import toolchain, version_or_absent

ENTRY_POINTS = "cachegraph.revalidators"

Revalidator = Callable[[str, Mapping[str, bytes]], bool]


def is_stale(compressed_encoding: bytes, record_format: int) -> bool:
    """Return True if another release of cachegraph, of the toolchain or of the application made the entry."""
    if record_format != RECORD_FORMAT:
        return True
    try:
        key = CacheKey.parse(expanded(compressed_encoding))
    except InvalidEncoding:  # of another HASH_VERSION, or damaged: no look-up finds it
        return True
    if namespace_of(key.level):
        return _is_stale_for_application(key)
    tools = dict(key.parts).get("toolchain")
    return tools is not None and tools not in _tools_here()


def _tools_here() -> frozenset[bytes]:
    """Return the ways in which keys name the tools here: kernels the compilers, functions SciPy, too."""
    compilers, scipy = toolchain(), version_or_absent("scipy")
    with_scipy: tuple[object, ...] = ({**compilers, "scipy": scipy}, (compilers, scipy))
    return frozenset(encode(tools) for tools in (compilers, *with_scipy))


def _is_stale_for_application(key: CacheKey) -> bool:
    namespace, _, level = key.level.partition("/")
    revalidator = _revalidator_of(namespace)
    if revalidator is None:
        return False
    try:
        return not revalidator(level, dict(key.parts))
    except Exception as error:  # it is the application's; an entry of which nothing is known stays
        logger("cachegraph").warning("asking %s whether %s is current failed: %r", namespace, key.hex, error)
        return False


@lru_cache(maxsize=64)
def _revalidator_of(namespace: str) -> Revalidator | None:
    from importlib.metadata import entry_points

    for found in entry_points(group=ENTRY_POINTS, name=namespace):
        try:
            revalidator: Revalidator = found.load()
        except Exception as error:  # the package is broken, or half installed
            logger("cachegraph").warning("loading the revalidator %s failed: %r", found.value, error)
            continue
        return revalidator
    return None
