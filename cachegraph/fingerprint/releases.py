"""The installed releases of distributions.

No package is imported for this, and usually importlib.metadata (10 ms) is not, either.
"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib.machinery import PathFinder

from cachegraph.fingerprint.primitives import strong_digest


@lru_cache(maxsize=64)
def package_version(name: str) -> str:
    """Return the installed version of the distribution `name`, whose import package has the same name.

    If an environment holds metadata of several versions, as after a failed upgrade, all are returned, joined
    by " or ", so that the answer changes whenever one of them does. Raises
    importlib.metadata.PackageNotFoundError, an ImportError, if it is not installed.
    """
    beside = _metadata_beside_package(_normal(name))
    if beside:
        return " or ".join(version for version, _ in beside)
    from importlib import metadata

    return metadata.version(name)


def recorded_files(name: str) -> str:
    """Return the digest (hex) of the file list of the distribution `name` if it was not installed from an
    index.

    A build from a directory, a repository or a file may change and keep its version. Empty for all others.
    """
    beside = _metadata_beside_package(_normal(name))
    if beside and not any(os.path.exists(os.path.join(path, "direct_url.json")) for _, path in beside):
        return ""
    from importlib import metadata

    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return ""
    if distribution.read_text("direct_url.json") is None:
        return ""
    record = distribution.read_text("RECORD")
    if record is None:
        return ""
    # without the installer's own files and compiled bytecode
    own = sorted(line for line in record.splitlines() if "sha256=" in line and ".dist-info/" not in line)
    return strong_digest("\n".join(own).encode()).hex()


def _normal(name: str) -> str:
    normal = name.replace("-", "_").replace(".", "_").lower()
    while "__" in normal:
        normal = normal.replace("__", "_")
    return normal


def _metadata_beside_package(name: str) -> list[tuple[str, str]]:
    """Return the version and the path of each directory of metadata beside the package `name`."""
    spec = PathFinder.find_spec(name)
    if spec is None or not spec.origin:
        return []
    place = os.path.dirname(spec.origin)
    site = os.path.dirname(place) if spec.submodule_search_locations else place
    found = [(version, os.path.join(site, entry)) for entry, version in metadata_in(site).get(name, ())]
    # A failed uninstall leaves the directory, but not this file.
    return sorted(row for row in found if os.path.exists(os.path.join(row[1], "METADATA")))


@lru_cache(maxsize=16)
def metadata_in(site: str) -> dict[str, list[tuple[str, str]]]:
    """Return the directories of metadata in the directory `site`, and the versions in their names, by the
    normalized names of distributions, as it was at the first call; do not change it."""
    found: dict[str, list[tuple[str, str]]] = {}
    try:
        entries = os.listdir(site)
    except OSError:
        return found
    for entry in entries:
        if entry.endswith(".dist-info"):
            name, _, version = entry.removesuffix(".dist-info").rpartition("-")
            found.setdefault(_normal(name), []).append((entry, version))
    return found
