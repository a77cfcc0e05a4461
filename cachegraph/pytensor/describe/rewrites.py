"""The canonical encoding of the rewrites that a Mode asks for: its query, and the databases as registered.

    query     := value((include, require, exclude, subqueries, position cutoff, extra rewrites))
    databases := strong digest of marshal(database*)
    database  := (class, ((name, value)*), entry*)              entries sorted by name
    entry     := (name, tag*, positions, rewriter | number of a database)         as in rewriters.py

Each reachable database is written once, and numbered in the order of the search;
`pytensor.compile.mode.optdb` is among them. All entries count, selected by the query or not, except those
of the packages that PyTensor loads late (LATE): these rewrite only their own Ops, and a process may have
loaded them by accident (importing numba's dispatch loads two). They count if a graph contains an Op or a
Type of the package, which is then loaded in any case.
"""

from __future__ import annotations

import marshal
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from pytensor.graph.rewriting.basic import FromFunctionNodeRewriter, Rewriter
from pytensor.graph.rewriting.db import RewriteDatabase, RewriteDatabaseQuery
from pytensor.graph.rewriting.unify import OpPattern, PatternNode
from pytensor.misc.ordered_set import OrderedSet

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.primitives import strong_digest
from cachegraph.pytensor.describe.rewriters import WITHOUT_REFERENCES, PlainRewriters
from cachegraph.pytensor.describe.values import EncodingContext, encode_value

LATE = ("pytensor.sparse", "pytensor.typed_list")
"""Packages of PyTensor with rewrites for their own Ops that numba's dispatch loads; a hit does without it."""

_MAPPINGS = ("__position__", "__final__", "__cleanup__")
_NOT_PARAMETERS = frozenset(
    (
        *_MAPPINGS,
        *("__db__", "_names", "db", "name", "__name__"),
        *("failure_callback", "profile", "_cached_default_query"),
    )
)
"""Attributes of a database that are written elsewhere, or are names, reports or caches."""

_NUMBERS = frozenset((type(None), bool, int, float))
_ABSENT = object()
Members = dict[str, tuple[Any, ...]]
"""The entries of a database by name and by tag."""

_known: list[tuple[list[object], frozenset[str], bytes, int]] = []


def encode_query(query: Any, context: EncodingContext) -> bytes:
    """Return the encoding of a Mode's query or rewriter; raises Unfingerprintable."""
    if not isinstance(query, RewriteDatabaseQuery):
        return encode_value(query, context)
    if type(query) is not RewriteDatabaseQuery:
        raise Unfingerprintable(type(query).__qualname__, "ask with a plain RewriteDatabaseQuery")
    subqueries = {name: encode_query(item, context) for name, item in query.subquery.items()}
    extra = [(encode_query(item, context), float(position)) for item, position in query.extra_rewrites]
    sets = (tuple(query.include), frozenset(query.require), frozenset(query.exclude))
    return encode_value((*sets, subqueries, float(query.position_cutoff), extra), context)


def encode_databases(roots: tuple[Any, ...], late: frozenset[str], context: EncodingContext) -> bytes:
    """Return a strong digest of the databases reached from `roots`, with the entries of the packages `late`.

    It is cached until something is registered. Raises Unfingerprintable, with the path to what has no
    encoding.
    """
    reached = _reached(roots)
    stamp: list[Any] = list(_stamp(reached.values()))
    for known, packages, encoding, foreign in _known:
        if packages == late and known == stamp:
            context.foreign += foreign
            return encoding
    code, before = context.code, context.foreign
    plain = PlainRewriters(context)
    contents = _Contents(reached, [name for name in LATE if name in sys.modules and name not in late], plain)
    rows = [
        (
            context.class_row(type(database)),
            plain.parameters(parameters),
            *_entries(database, members, contents),
        )
        for database, members, parameters in zip(stamp[::4], stamp[1::4], stamp[3::4], strict=True)
    ]
    encoding = strong_digest(marshal.dumps(rows, WITHOUT_REFERENCES))
    if context.code == code:
        _known[4:] = []
        _known.insert(0, (stamp, late, encoding, context.foreign - before))
    return encoding


def _reached(roots: tuple[Any, ...]) -> dict[int, tuple[Any, Members]]:
    """Return the databases reached from `roots`, by id, in the order of the search, with their entries."""
    found: dict[int, tuple[Any, Members]] = {}
    pending = list(reversed(roots))
    while pending:
        database = pending.pop()
        if id(database) in found:
            continue
        _, members = found[id(database)] = database, _members(database)
        within = [members[name][0] for name in sorted(database._names)]
        if hasattr(database, "db"):
            within.insert(0, database.db)
        pending.extend(item for item in reversed(within) if isinstance(item, RewriteDatabase))
    return found


def _members(database: Any) -> Members:
    found = {}
    for tag, items in database.__db__.items():
        # Iterating over an OrderedSet runs Python for each item.
        held = tuple(items.values if type(items) is OrderedSet else items)
        if held:
            found[tag] = held
    return found


def _stamp(databases: Iterable[tuple[Any, Members]]) -> Iterator[object]:
    """Yield what changes with each registration; rewriters and databases compare by identity."""
    for database, members in databases:
        yield database
        yield members
        yield [dict(getattr(database, name, ())) for name in _MAPPINGS]
        yield _attributes(database)


class _Contents(dict[int, object]):
    """The contents of entries, by id: numbers of databases, and rewriters as `PlainRewriters` has them.

    Many rewriters are in several databases; each is described once.
    """

    def __init__(self, databases: Iterable[int], unused: list[str], rewriters: PlainRewriters) -> None:
        """The rewriters of the `unused` packages have no content: ABSENT."""
        super().__init__({key: number for number, key in enumerate(databases)})
        self._unused = unused
        self._rewriters = rewriters

    def of(self, item: Any) -> object:
        """Return the content of an entry; raises Unfingerprintable."""
        found = self.get(id(item))
        if found is None:
            absent = self._unused and not _rewrites_beyond(item, self._unused)
            found = self[id(item)] = _ABSENT if absent else self._rewriters.plain(item)
        return found


def _entries(database: Any, members: Members, contents: _Contents) -> Iterator[object]:
    """Yield the entries of `database` that have contents."""
    tags = _tags(members)
    mappings = [getattr(database, name, {}) for name in _MAPPINGS]
    for name in sorted(database._names):
        (item,) = members[name]
        try:
            content = contents.of(item)
            if content is _ABSENT:
                continue
            positions = [mapping.get(name) for mapping in mappings]
            if not _NUMBERS.issuperset(map(type, positions)):
                positions = [_position(value) for value in positions]
        except Unfingerprintable as error:
            error.inside(f"rewrite {name!r}")
            raise
        yield name, tuple(tags[id(item)]), *positions, content


def _position(value: object) -> object:
    """Return a position, or whether a rewrite is of a kind, as a plain value; raises Unfingerprintable."""
    return value if type(value) in _NUMBERS else encode(value)


def _attributes(database: Any) -> dict[str, object]:
    return {name: value for name, value in vars(database).items() if name not in _NOT_PARAMETERS}


def _tags(members: Members) -> dict[int, list[str]]:
    """Return the names and tags of each entry, sorted, by its id."""
    found: dict[int, list[str]] = {}
    for tag in sorted(members):
        for item in members[tag]:
            found.setdefault(id(item), []).append(tag)
    return found


def _rewrites_beyond(rewriter: Any, packages: list[str]) -> bool:
    """Return True if `rewriter`, or a part of it, may rewrite a graph without an Op of `packages`, which are
    late.
    """
    if type(rewriter) is FromFunctionNodeRewriter:
        return _packages_of(rewriter.fn.__module__).isdisjoint(packages)
    parts = list(_rewriters_within(rewriter))
    if parts:
        return any(_rewrites_beyond(part, packages) for part in parts)
    return all(_packages_of(module).isdisjoint(packages) for module in _modules_of(rewriter))


def parts_of_rewriter(rewriter: Any) -> Iterator[Any]:
    """Yield `rewriter` and the rewriters it is made of; for one made of a function alone, that function."""
    if type(rewriter) is FromFunctionNodeRewriter:
        yield rewriter.fn
        return
    yield rewriter
    for part in _rewriters_within(rewriter):
        yield from parts_of_rewriter(part)


def _rewriters_within(rewriter: Any) -> Iterator[Any]:
    held = (getattr(rewriter, "node_rewriter", None), *getattr(rewriter, "rewrites", ()))
    yield from (part for part in (*held, *getattr(rewriter, "data", ())) if isinstance(part, Rewriter))


@lru_cache(maxsize=1024)
def _packages_of(module: str) -> frozenset[str]:
    return frozenset(package for package in LATE if is_within(module, package))


def _modules_of(rewriter: Any) -> Iterator[str]:
    """Yield the modules of a rewriter, of its function, and of the Ops that it looks for."""
    pending = [rewriter, *(getattr(rewriter, name, None) for name in ("fn", "in_pattern", "op1"))]
    while pending:
        item = pending.pop()
        yield type(item).__module__
        if isinstance(item, type) or callable(item):
            yield getattr(item, "__module__", None) or ""
        if isinstance(item, PatternNode):
            pending += (item.op_match, *item.inputs)
        elif isinstance(item, OpPattern):
            pending.append(item.op_type)


def is_within(module: str, package: str) -> bool:
    """Return True if `module` is `package` or lies in it."""
    return module == package or module.startswith(package + ".")
