"""The bytecode of the modules that a hit imports, kept in one file of the cache directory.

A hit imports more than a hundred small modules. Python looks for each in its directory, and opens, reads and
unmarshals its bytecode; that is a third of a warm start. From one file they are read together, and none is
looked for. All else is as Python does it: a module has the specification, the file and a loader of the kind
that it would have, and the code that Python would run. It is that code only while the source file is as it
was: what is not so is imported by Python alone.

    file    := "cgmodules" version (1 byte) sum rows
    sum     := XXH3-128 of the rows
    rows    := marshal((module, source, is a package, inode, size, time of modification, time of change,
               file of Python's bytecode, code)*)                          times in nanoseconds since 1970
    name    := XXH3-128, in hexadecimal, of Python's cache tag and magic number, its level of optimization and
               directory of bytecode, the purpose, and the directory of this package, a zero byte between

A process that has built an entry writes the file when it ends, if one of its modules was not in it; a hit
writes nothing.
Left out is source whose next edit might not show, by the rules for records of source (source_records.py):
what was changed just now, or lies on a file system that is not known to keep times of change.
Like entries, the file belongs to this user alone, or it is not read.

Version history: 1 is the first.
"""

from __future__ import annotations

import atexit
import marshal
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import MAGIC_NUMBER
from itertools import islice
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from xxhash import xxh3_128_digest, xxh3_128_hexdigest  # cachegraph.fingerprint is among the modules

from cachegraph.errors import NoDirectoryError, SettingsError
from cachegraph.logger import logger
from cachegraph.settings import current_settings
from cachegraph.store.files import read_file
from cachegraph.store.paths import Layout
from cachegraph.store.trust import PRIVATE, Guard, Trust

if TYPE_CHECKING:
    from typing import Protocol

    class CodeFiles(Protocol):
        """The place where the file is kept; nobody else can write there."""

        def write_module_code(self, name: str, content: bytes) -> None:
            """Replace the file of that name. Raises OSError, also if the cache is gone."""

        def tells_changes(self, directory: str) -> bool:
            """Return True if the file system of `directory` keeps times of change that nobody can set."""


MOST = 16 << 20
"""The most bytes of a file."""

_HEAD = b"cgmodules\x01"
_SUM = len(_HEAD) + 16
_ROOT = os.path.dirname(os.path.abspath(__file__))

State = tuple[int, int, int, int]
Row = tuple[str, str, bool, int, int, int, int, str, CodeType]
Source = tuple[str, str, bool, State, str]


class HitModules:
    """A finder, before Python's own, of modules whose bytecode was kept by an earlier process.

    `start` reads what was kept, `note` says that what was imported since then is what a hit imports, and
    `keep_at_exit` keeps it for later processes.
    """

    def __init__(self) -> None:
        self._purpose: str | None = None
        self._rows: dict[str, Row] = {}
        self._found: set[str] = set()
        self._count = 0
        self._noted: list[str] = []
        self._is_done = False

    def start(self, purpose: str) -> None:
        """Find modules in the file kept for `purpose`. Never raises.

        A second call says only that what was imported meanwhile is not to be noted.
        """
        self._count = len(sys.modules)
        if self._purpose is not None:
            return
        self._purpose = purpose
        self._rows = {row[0]: row for row in _kept(_name(purpose))}
        if self._rows and PathFinder in sys.meta_path:
            sys.meta_path.insert(sys.meta_path.index(PathFinder), self)

    def stop(self) -> None:
        """Find nothing any longer, and be as before `start`."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        vars(self).update(vars(HitModules()))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification by which Python would import a kept module; None for any other, or if its
        source is not what it was."""
        row = self._rows.get(fullname)
        if row is None or path is None or fullname in self._found:
            return None
        _, source, is_package, *state, cached, code = row
        if list(path) != [_home(source, is_package)] or _state(source) != tuple(state):
            return None
        self._found.add(fullname)
        spec = ModuleSpec(fullname, KeptLoader(fullname, source, code), origin=source, is_package=is_package)
        spec.has_location, spec.cached = True, cached
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(os.path.dirname(source))
        return spec

    def note(self, *packages: str) -> None:
        """Note the modules in `packages` that were imported since `start`, or the last note.

        Those that follow the first entry that is stored are a compiler's: they are not noted.
        """
        if self._purpose is not None and not self._is_done:
            places = tuple(f"{package}." for package in packages)
            self._noted += [
                name for name in islice(sys.modules, self._count, None) if name.startswith(places)
            ]
            self._count = len(sys.modules)

    def keep_at_exit(self, files: CodeFiles) -> None:
        """Have `keep` called when the process ends, as it takes 25 ms; only the first call after `start` does
        something."""
        if self._purpose is None or self._is_done:
            return
        self._is_done = True
        if not self._found.issuperset(self._noted):
            atexit.register(self._keep_quietly, files)

    def _keep_quietly(self, files: CodeFiles) -> None:
        try:
            self.keep(files)
        except Exception as error:
            logger("cachegraph").debug("keeping the modules of a hit failed: %s", error)

    def keep(self, files: CodeFiles) -> None:
        """Keep in `files` the noted modules, and those that are kept already, unless these are all.

        Raises OSError, and what compiling source raises.
        """
        noted, self._noted = self._noted, []
        if self._purpose is None or self._found.issuperset(noted) or sys.dont_write_bytecode:
            return
        tells_changes = cache(files.tells_changes)
        shown = [found for found in _sources_of(noted) if _shows_edits(found, tells_changes)]
        if self._found.issuperset([name for name, *_ in shown]):
            return
        before = (row for row in self._rows.values() if _state(row[1]) == row[3:7])
        rows = {row[0]: row for row in (*before, *_with_code(shown))}
        content = marshal.dumps(tuple(rows.values()))
        files.write_module_code(_name(self._purpose), _HEAD + xxh3_128_digest(content) + content)


class KeptLoader(SourceFileLoader):
    """Python's loader of a source file, which has its code for the first import."""

    def __init__(self, fullname: str, path: str, code: CodeType) -> None:
        super().__init__(fullname, path)
        self._code: CodeType | None = code

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of the module."""
        code, self._code = self._code, None
        return super().get_code(fullname) if code is None else code


def _name(purpose: str) -> str:
    python = (str(sys.implementation.cache_tag), MAGIC_NUMBER.hex(), str(sys.flags.optimize))
    parts = (*python, sys.pycache_prefix or "", purpose, _ROOT)
    return xxh3_128_hexdigest(b"\0".join(map(os.fsencode, parts)))


def _kept(name: str) -> tuple[Row, ...]:
    """Return the rows of the file of that name; none if it is missing, damaged or not trusted."""
    try:
        directory = current_settings().directory
        if directory is None:
            return ()
        guard = Guard(directory, Trust.of(PRIVATE))
        content = read_file(Layout(directory).modules / name, guard, MOST)
    except (OSError, SettingsError, NoDirectoryError):
        return ()
    if not content.startswith(_HEAD) or xxh3_128_digest(content[_SUM:]) != content[len(_HEAD) : _SUM]:
        return ()
    rows: tuple[Row, ...] = marshal.loads(content[_SUM:])
    return rows


def _sources_of(names: Sequence[str]) -> Iterator[Source]:
    """Yield the modules that were imported from source files: name, source file, is a package, state of the
    file, file of bytecode.

    A module that somebody has put under another name is not imported by that name.
    """
    for name in names:
        spec: Any = getattr(sys.modules.get(name), "__spec__", None)
        if spec is None or spec.name != name or not isinstance(spec.loader, SourceFileLoader):
            continue
        state = _state(spec.loader.path)
        if state is not None and spec.cached is not None:
            is_package = spec.submodule_search_locations is not None
            yield name, spec.loader.path, is_package, state, spec.cached


def _with_code(shown: Sequence[Source]) -> Iterator[Row]:
    """Yield rows of the modules whose source has not changed since it was looked at."""
    for name, source, is_package, state, cached in shown:
        code = SourceFileLoader(name, source).get_code(name)
        if code is not None and state == _state(source):
            yield name, source, is_package, *state, cached, code


def _state(source: str) -> State | None:
    try:
        found = os.stat(source)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _shows_edits(found: Source, tells_changes: Callable[[str], bool]) -> bool:
    """Return True if no later edit of a module's source leaves its state as it is."""
    from cachegraph.fingerprint.source_records import later_edits_show  # a hit imports it from the file

    _, source, *_ = found
    try:
        return later_edits_show(source) and tells_changes(os.path.dirname(source))
    except OSError:
        return False


def _home(source: str, is_package: bool) -> str:
    """Return the directory in which Python finds the module of that source file."""
    directory = os.path.dirname(source)
    return os.path.dirname(directory) if is_package else directory


HIT_MODULES = HitModules()
"""Those of this process."""
