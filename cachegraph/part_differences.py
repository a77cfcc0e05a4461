"""The difference of two encodings of one part of a key, in words for people.

Parts are told apart by their name and their form: engine, adapter and numba write other things into a part
`code`. A reader raises InvalidEncoding for the form of another; what none of them can read is compared value
by value (fingerprint/decoder.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from cachegraph.errors import InvalidEncoding
from cachegraph.fingerprint.decoder import Decoded, check_version, decode, decode_value
from cachegraph.fingerprint.primitives import Reader, digest
from cachegraph.fingerprint.value_difference import describe_difference, first_difference

_DOING = "reading a part of a key"
_DIGITS = 12
_SIZES_OF_SOURCE = (16, 48)
_NAMED = re.compile(r"\['([\w.]+)'\]")
_CHOICES = ("included", "required", "excluded")
_FLAGS = ("may be overwritten", "may be aliased", "is updated", "is implicit", "is shared", "has a value")


def part_difference(part: str, wanted: bytes, stored: bytes) -> str:
    """Return the difference of a part that differs between a wanted and a stored key, in one line."""
    for read in _READERS.get(part, ()):
        try:
            return read(wanted, stored)
        except (InvalidEncoding, RecursionError, LookupError):
            continue
    return describe_difference(wanted, stored)


def _source(wanted: bytes, stored: bytes) -> str:
    """Compare digests of the engine's source."""
    if not len(wanted) == len(stored) in _SIZES_OF_SOURCE:
        raise InvalidEncoding(_DOING, 0, "the digest of a source", f"{len(wanted)} bytes")
    digits, others = (digest(content).hex()[:_DIGITS] for content in (wanted, stored))
    changed = "the source of cachegraph's engine is another release's, or was edited"
    return f"{changed} (digest {digits}, stored {others})"


def _host_code(wanted: bytes, stored: bytes) -> str:
    """Compare the release of PyTensor, and the sources of checkouts and of the adapter."""
    (one, sources), (other, its_sources) = _host(wanted), _host(stored)
    if one != other:
        return f"pytensor {one}, stored {other}"
    changed = [name for name in {**sources, **its_sources} if sources.get(name) != its_sources.get(name)]
    return f"the source of {' and '.join(changed)} is another release's, or was edited"


def _host(encoding: bytes) -> tuple[str, dict[str, str]]:
    (_, version), (_, sources) = decode(encoding).parts
    return _bare(version), {_bare(row.parts[0][1]): row.parts[1][1].text for _, row in sources.parts}


def _registered_with_numba(wanted: bytes, stored: bytes) -> str:
    """Compare the packages, and the code of others, that have registered with numba (registrations.py)."""
    (mine, definitions, bounds), (its, others, its_bounds) = _registrations(wanted), _registrations(stored)
    said = []
    for name in sorted({**mine, **its}):
        one, other = mine.get(name), its.get(name)
        if other is None:
            said.append(f"{name} {one} has registered with numba; the stored one was compiled without")
        elif one is None:
            said.append(f"the stored one was compiled where {name} {other} had registered with numba")
        elif one != other:
            said.append(f"{name} {one} has registered with numba, stored {other}")
    if definitions != others:
        said.append("other code than for the stored one has registered with numba")
    if bounds != its_bounds:
        said.append(f"checks of bounds: {bounds}, stored {its_bounds}")
    return "; ".join(said)


def _registrations(encoding: bytes) -> tuple[dict[str, str], list[bytes], str]:
    reader = Reader(encoding, _DOING)
    check_version(reader)
    releases = {reader.text(): reader.text() for _ in range(reader.uint())}
    definitions = [reader.bytes() for _ in range(reader.uint())]
    bounds = decode_value(reader).text
    reader.end()
    return releases, definitions, bounds


def _by_name(wanted: bytes, stored: bytes) -> str:
    """Compare values that have names: releases, flags."""
    found = first_difference(decode(wanted), decode(stored))
    if found is None:
        raise InvalidEncoding(_DOING, 0, "two values", "one")
    name = _NAMED.search(found.path)
    return str(found._replace(path=name[1] if name else found.path))


def _rewrites_of_engine(wanted: bytes, stored: bytes) -> str:
    return "; ".join(_choices(decode(wanted), decode(stored)))


def _rewrites_of_pytensor(wanted: bytes, stored: bytes) -> str:
    """Compare a query, the digest of all registered rewrites, and the name of a backend other than numba."""
    (mine, databases, *backend), (its, others, *its_backend) = _pieces(wanted), _pieces(stored)
    said = [*_choices(decode(mine), decode(its))] if mine != its else []
    if databases != others:
        said.append("other rewrites are registered, or their code differs")
    if backend != its_backend:
        name, other = (decode(one[0]).text if one else "'numba'" for one in (backend, its_backend))
        said.append(f"the backend is {name}, stored {other}")
    return "; ".join(said)


def _pieces(encoding: bytes) -> list[bytes]:
    reader, found = Reader(encoding, _DOING), []
    while reader.peek(1):
        found.append(reader.bytes())
    return found


def _choices(wanted: Decoded, stored: Decoded) -> Sequence[str]:
    """Return how two queries of rewrites differ: the names that only one of them includes, or excludes."""
    said = []
    for number, word in enumerate(_CHOICES):
        mine, its = ({_bare(name) for _, name in value.parts[number][1].parts} for value in (wanted, stored))
        said += [f"{name} {word}, stored not {word}" for name in sorted(mine - its)]
        said += [f"{name} not {word}, stored {word}" for name in sorted(its - mine)]
    if not said:
        said = [str(first_difference(wanted, stored))]
    return said


def _interface_of_pytensor(wanted: bytes, stored: bytes) -> str:
    """Compare what is said of the inputs of a function, and of its outputs."""
    found = first_difference(decode(wanted), decode(stored))
    place = None if found is None else re.fullmatch(r"\[0\]\[0\]\[(\d+)\]\[(\d)\]", found.path)
    if found is None or place is None:
        raise InvalidEncoding(_DOING, 0, "inputs with a difference", "something else")
    return f"input {place[1]} {_FLAGS[int(place[2])]}: {found.wanted}, stored {found.stored}"


def _bare(value: Decoded) -> str:
    return value.text.strip("'\"")


_READERS: Mapping[str, tuple[Callable[[bytes, bytes], str], ...]] = {
    "code": (_registered_with_numba, _host_code, _source),  # a digest may have any form, so it comes last
    "interface": (_interface_of_pytensor,),
    "options": (_by_name,),
    "rewrites": (_rewrites_of_engine, _rewrites_of_pytensor),
    "toolchain": (_by_name,),
}
