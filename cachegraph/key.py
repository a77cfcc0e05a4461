"""A cache key: the named parts that describe one computation, and two digests of them.

The canonical encoding of a key (`uint` and `text` as in fingerprint/primitives.py):

    key  := HASH_VERSION(1 byte) text(level) uint(number of parts) part*
    part := text(name) uint(length) canonical encoding of the part
    level := one of LEVELS | namespace "/" word     namespace, word: 1 to 40 of A-Z a-z 0-9 . _ -

A namespace has the entries of one application: with the level, it is part of every key.

Version history: that of HASH_VERSION, in fingerprint/primitives.py. A level of a namespace is no new version:
a release that does not know them refuses such a key as it refuses a damaged one.

The form stored for explanations:

    kept := zlib(key) [zlib(names)]         names: a JSON array of texts, empty for what has no name

The names are those of the variables of the graph, by their numbers in it. They are in no digest and
find nothing; a reader that does not know them reads the key alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cachegraph.errors import InvalidEncoding
from cachegraph.fingerprint.primitives import HASH_VERSION, Reader, digest, pack_uint, strong_digest
from cachegraph.named_tuples import NamedTuple

_LONGEST = 256 * 2**20
_LONGEST_NAME, _MOST_NAMES, _LONGEST_NAMES = 60, 20_000, 8 * 2**20

LEVELS = ("function", "op", "kernel", "numba")
"""The levels of cachegraph's own entries, which are in no namespace."""

LONGEST_WORD = 40
_WORD_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_A_LEVEL = f"one of {', '.join(LEVELS)}, or a level of a namespace, such as toyc/program"

SUBJECTS = ("graph", "kernel", "function")
"""The parts that say what is computed; the others say how, by which tools, and for which machine."""


class CacheKey(NamedTuple):
    """The key of one entry: `digest` (16 bytes) finds it, `confirmation` (32 bytes) proves that it is the
    right one.

    `parts` maps names to the canonical encodings of the parts; their order is part of the identity. Make keys
    with `build` or `parse`, which compute the digests. `names` serve explanations only: keys that differ in
    nothing else are equal.
    """

    level: str
    parts: tuple[tuple[str, bytes], ...]
    digest: bytes
    confirmation: bytes
    names: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is CacheKey and self[:4] == other[:4]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.level, self.digest))

    def __repr__(self) -> str:
        return f"CacheKey(level={self.level!r}, digest={self.digest!r})"

    @classmethod
    def build(cls, level: str, parts: Mapping[str, bytes]) -> CacheKey:
        """Return the key of `parts` at `level`: one of LEVELS, or a level of a namespace; else ValueError."""
        if not is_level(level):
            raise ValueError(f"building a cache key: level is {level!r}; it must be {_A_LEVEL}")
        named = tuple(parts.items())
        return cls._of(level, named, b"".join(_pieces(level, named)))

    @classmethod
    def parse(cls, encoding: bytes) -> CacheKey:
        """Return the key with this `encoding`; raises InvalidEncoding for anything that `build` would not
        have written."""
        reader = Reader(encoding, "parsing a cache key")
        version = reader.byte()
        if version != HASH_VERSION:
            raise reader.error(f"hash version {HASH_VERSION}", f"version {version}")
        level = reader.text()
        if not is_level(level):
            raise reader.error(f"a level ({_A_LEVEL})", repr(level))
        parts = tuple((reader.text(), reader.bytes()) for _ in range(reader.uint()))
        reader.end()
        if len(dict(parts)) != len(parts):
            raise reader.error("parts of different names", "one name twice")
        return cls._of(level, parts, encoding)

    @classmethod
    def _of(cls, level: str, parts: tuple[tuple[str, bytes], ...], encoding: bytes) -> CacheKey:
        return cls(level, parts, digest(encoding), strong_digest(encoding))

    @property
    def hex(self) -> str:
        """The digest in hexadecimal, as the command line shows it."""
        return self.digest.hex()

    @property
    def encoding(self) -> bytes:
        """The whole canonical encoding, assembled on each call."""
        return b"".join(_pieces(self.level, self.parts))

    @property
    def part_digests(self) -> dict[str, bytes]:
        """The XXH3-128 of each part by name; an explanation compares these of two keys."""
        return {name: digest(part) for name, part in self.parts}


def is_level(level: str) -> bool:
    """Return True for one of LEVELS, and for a level of a namespace: two words with a slash between them."""
    if level in LEVELS:
        return True
    namespace, _, word = level.partition("/")
    return is_word(namespace) and is_word(word)


def is_word(text: str) -> bool:
    """Return True if `text` can name a namespace, or a level in one."""
    return isinstance(text, str) and 0 < len(text) <= LONGEST_WORD and _WORD_CHARACTERS.issuperset(text)


def check_word(text: str) -> str:
    """Return `text`; raises ValueError if it cannot name a namespace, or a level in one."""
    if not is_word(text):
        raise ValueError(
            f"naming a namespace or a level: found {text!r:.80}; use 1 to {LONGEST_WORD} of A-Z a-z 0-9 . _ -"
        )
    return text


def namespace_of(level: str) -> str:
    """Return the namespace of a level; empty for one of LEVELS."""
    return level.partition("/")[0] if "/" in level else ""


def compressed(key: CacheKey, level: int = -1) -> bytes:
    """Return the form of `key` that is stored for explanations, compressed at that level."""
    import zlib

    content = zlib.compress(key.encoding, level)
    if not any(key.names):
        return content
    import json

    shown = [name[:_LONGEST_NAME] for name in key.names[:_MOST_NAMES]]
    return content + zlib.compress(json.dumps(shown).encode(), level)


def kept_names(compressed: bytes) -> tuple[str, ...]:
    """Return the names stored with a key; none if there are none, or if they are damaged."""
    import json
    import zlib

    key, stream = zlib.decompressobj(), zlib.decompressobj()
    try:
        key.decompress(compressed, _LONGEST)
        names = json.loads(stream.decompress(key.unused_data, _LONGEST_NAMES) or b"[]")
    except (zlib.error, ValueError, RecursionError):
        return ()
    return tuple(names) if isinstance(names, list) and all(type(name) is str for name in names) else ()


def expanded(compressed: bytes) -> bytes:
    """Return the encoding that zlib compressed; raises InvalidEncoding for anything else, and above 256
    MiB."""
    import zlib  # a hit needs no encoding

    stream = zlib.decompressobj()
    doing = "expanding the encoding of a key"
    try:
        found = stream.decompress(compressed, _LONGEST)
    except zlib.error as error:
        raise InvalidEncoding(doing, 0, "what zlib compressed", str(error)) from None
    if not stream.eof:
        raise InvalidEncoding(doing, len(found), f"the end within {_LONGEST} bytes", "more, or nothing")
    return found


def _pieces(level: str, parts: tuple[tuple[str, bytes], ...]) -> Iterator[bytes]:
    yield bytes((HASH_VERSION,))
    yield from _prefixed(level.encode())
    yield pack_uint(len(parts))
    for name, part in parts:
        yield from _prefixed(name.encode("utf-8", "surrogatepass"))
        yield from _prefixed(part)


def _prefixed(content: bytes) -> Iterator[bytes]:
    yield pack_uint(len(content))
    yield content
