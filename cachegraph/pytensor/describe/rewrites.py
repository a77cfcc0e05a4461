"""The canonical encoding of the rewrites that a Mode asks for: its query, and the databases as registered.

    query     := value((include, require, exclude, subqueries, position cutoff, extra rewrites))
    databases := strong digest of marshal((origins, database*, rewriter*))        as in rewriters.py
    database  := (class, ((name, value)*), (name, number)*, (tag, number*)*, positions)
    positions := (name, value)*    thrice: of an entry, whether it is final, and whether it cleans up
    number    := of a database, or their count plus that of a rewriter

Each reachable database is written once, and numbered in the order of the search;
`pytensor.compile.mode.optdb` is among them. So is each rewriter, in as many databases as it may be. Names
are sorted; what has a tag is in the order of registration, in which PyTensor applies it. All entries count,
selected by the query or not, except those
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
    unused = tuple(name for name in LATE if name in sys.modules and name not in late)
    contents = _Contents(reached, unused, context)
    rows = [
        contents.row(database, members, mappings, parameters)
        for database, members, mappings, parameters in zip(
            *(stamp[part::4] for part in range(4)), strict=True
        )
    ]
    encoding = strong_digest(marshal.dumps(contents.all(rows), WITHOUT_REFERENCES))
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


class _Contents:
    """The contents of databases, numbered: databases, then rewriters, each of which is described once."""

    def __init__(self, databases: Iterable[int], unused: tuple[str, ...], context: EncodingContext) -> None:
        """The rewriters of the `unused` packages have no number."""
        self._numbers: dict[int, int | None] = {key: number for number, key in enumerate(databases)}
        self._databases = len(self._numbers)
        self._unused = unused
        self._context = context
        self._plain = PlainRewriters(context)
        self._rewriters: list[object] = []

    def row(
        self, database: Any, members: Members, mappings: list[dict[str, Any]], parameters: dict[str, object]
    ) -> object:
        """Return a database as a plain value; raises Unfingerprintable."""
        names = database._names
        entries = dict(self._entries(sorted(names), members))
        tagged = [(tag, self._numbers_of(members[tag])) for tag in sorted(members) if tag not in names]
        return (
            self._context.class_row(type(database)),
            self._plain.parameters(parameters),
            tuple(entries.items()),
            tuple([row for row in tagged if row[1]]),
            *[_positions(entries, mapping) for mapping in mappings],
        )

    def all(self, rows: list[object]) -> Any:
        """Return the plain value of all databases, whose rows these are."""
        return self._plain.origins(), rows, self._rewriters

    def _entries(self, names: list[str], members: Members) -> Iterator[tuple[str, int]]:
        """Yield the entries with their numbers; raises Unfingerprintable."""
        for name in names:
            (item,) = members[name]
            try:
                number = self._number(item)
            except Unfingerprintable as error:
                error.inside(f"rewrite {name!r}")
                raise
            if number is not None:
                yield name, number

    def _numbers_of(self, items: tuple[Any, ...]) -> tuple[int, ...]:
        return tuple([number for item in items if (number := self._number(item)) is not None])

    def _number(self, item: Any) -> int | None:
        """Return the number of a database or rewriter, None if it is unused; raises Unfingerprintable."""
        key = id(item)
        if key in self._numbers:
            return self._numbers[key]
        plain = self._plain.plain(item)
        number = None
        if not self._is_unused(item, plain):
            number = self._databases + len(self._rewriters)
            self._rewriters.append(plain)
        self._numbers[key] = number
        return number

    def _is_unused(self, rewriter: Any, plain: object) -> bool:
        """Return True if `rewriter` needs an Op of a late package; its plain value names all modules."""
        if not self._unused:
            return False
        if type(plain) is bytes and not any(name.encode() in plain for name in self._unused):
            return False
        return not _rewrites_beyond(rewriter, self._unused)


def _positions(entries: dict[str, int], mapping: dict[str, Any]) -> object:
    """Return what `mapping` says of the entries; raises Unfingerprintable."""
    if not mapping:
        return ()
    said = [(name, mapping[name]) for name in entries if name in mapping]
    return tuple([(name, value if type(value) in _NUMBERS else encode(value)) for name, value in said])


def _attributes(database: Any) -> dict[str, object]:
    return {name: value for name, value in vars(database).items() if name not in _NOT_PARAMETERS}


def _rewrites_beyond(rewriter: Any, packages: tuple[str, ...]) -> bool:
    """Return True if `rewriter`, or a part of it, may rewrite a graph without an Op of `packages`, which are
    late.
    """
    if type(rewriter) is FromFunctionNodeRewriter:
        return not _is_of(packages, rewriter.fn.__module__)
    parts = _rewriters_within(rewriter)
    if parts:
        return any(_rewrites_beyond(part, packages) for part in parts)
    return not any(_is_of(packages, module) for module in _modules_of(rewriter))


def parts_of_rewriter(rewriter: Any) -> Iterator[Any]:
    """Yield `rewriter` and the rewriters it is made of; for one made of a function alone, that function."""
    if type(rewriter) is FromFunctionNodeRewriter:
        yield rewriter.fn
        return
    yield rewriter
    for part in _rewriters_within(rewriter):
        yield from parts_of_rewriter(part)


def _rewriters_within(rewriter: Any) -> list[Any]:
    held = (getattr(rewriter, "node_rewriter", None), *getattr(rewriter, "rewrites", ()))
    return [part for part in (*held, *getattr(rewriter, "data", ())) if isinstance(part, Rewriter)]


@lru_cache(maxsize=1024)
def _is_of(packages: tuple[str, ...], module: str) -> bool:
    return any(is_within(module, package) for package in packages)


def _modules_of(rewriter: Any) -> set[str]:
    """Return the modules of a rewriter, of its function, and of the Ops that it looks for."""
    found = set()
    pending = [rewriter, *[getattr(rewriter, name, None) for name in ("fn", "in_pattern", "op1")]]
    while pending:
        item = pending.pop()
        kind = type(item)
        found.add(kind.__module__)
        if kind is PatternNode:
            pending += (item.op_match, *item.inputs)
        elif kind is OpPattern:
            pending.append(item.op_type)
        elif isinstance(item, type) or callable(item):
            found.add(getattr(item, "__module__", None) or "")
    return found


def is_within(module: str, package: str) -> bool:
    """Return True if `module` is `package` or lies in it."""
    return module == package or module.startswith(package + ".")
