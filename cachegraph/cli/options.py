"""The common parts of the commands: options, opening a store, and how they end on a problem."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

import click

from cachegraph.cli.exit_codes import EXIT_CODES
from cachegraph.cli.output import print_problem
from cachegraph.declared_settings import VARIABLES
from cachegraph.environment import unknown_variables
from cachegraph.errors import NoDirectoryError, SettingsError, StoreError
from cachegraph.key import LEVELS, is_level, is_word
from cachegraph.settings import Settings, cache_directory, current_settings, mistakes
from cachegraph.store.entry import ALL_LEVELS
from cachegraph.store.failures import is_damage
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.directory import CacheDirectory
from cachegraph.store.paths import STORE_VERSION
from cachegraph.store.tiers import Placement, place

if TYPE_CHECKING:
    from cachegraph.store.remote.files import RemoteFiles

_T = TypeVar("_T")

directory_option = click.option(
    "--dir",
    "directory",
    type=click.Path(readable=False, path_type=Path),  # each command checks, and reports, that itself
    help="The cache directory.",
    show_default=f"{VARIABLES['directory']}, or the user's cache directory",
)
namespace_option = click.option("--namespace", metavar="NAME", help="Only the entries of this application.")
level_option = click.option(
    "--level",
    metavar="LEVEL",
    help=f"Only entries of this level: {', '.join(LEVELS)}, or one of the namespace.",
)
remote_option = click.option(
    "--remote", default="", metavar="URL", help="A server, as in CACHEGRAPH_REMOTE, not a directory."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


class Group(click.Group):
    """A group whose help shows the first paragraph of each command's help whole: click would cut it off."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, _summary(self.get_command(ctx, name))) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _summary(command: click.Command | None) -> str:
    text = "" if command is None else command.help or ""
    return " ".join(text.partition("\n\n")[0].split())


def command(name: str) -> Callable[[Callable[..., None]], click.Command]:
    """Return a decorator that makes a command of a function: its docstring is the help."""
    return click.command(name, epilog=EXIT_CODES)


def parsed(parse: Callable[[str], _T]) -> Callable[[str], _T]:
    """Return the type of an option whose text `parse` reads: its ValueError is what the user is told."""

    def read(text: str) -> _T:
        try:
            return parse(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return read


def levels_of(namespace: str | None, level: str | None = None) -> str:
    """Return the pattern of the levels that the options name; ends the command with code 2 for no level."""
    if namespace is None:
        if level is not None and not is_level(level):
            fail(f"--level: {level!r} is not one of {', '.join(LEVELS)}, nor one of a namespace", code=2)
        return level or ALL_LEVELS
    for word in (namespace, *([] if level is None else [level])):
        if not is_word(word):
            fail(f"{word!r} cannot name a namespace, or a level in one", code=2)
    return f"{namespace}/{level or '*'}"


def open_directory(directory: Path | None) -> CacheDirectory:
    """Return the contents of the cache in `directory`, or in the one that the settings name.

    Ends the command with code 2 if the given `directory` has no cache, and with code 1 if it cannot be read.
    """
    try:
        cache = CacheDirectory(open_placement(directory))
        exists = cache.exists
    except OSError as error:
        fail(str(error))
    if directory is not None and not exists:
        fail(f"there is no cache in {cache.path}{_advice(cache.path)}", code=2)
    return cache


def _advice(path: Path) -> str:
    """Return a hint where the intended cache may be; empty if there is none."""
    if path.name == STORE_VERSION:
        return f"; give the directory that {STORE_VERSION} is in: {path.parent}"
    if not os.path.exists(path):
        return ": there is no such directory"
    near = path / "cachegraph"
    return f"; there is one in {near}" if os.path.exists(near / STORE_VERSION) else ""


def open_placement(directory: Path | None) -> Placement:
    """Return the tiers of the cache in `directory`, or of the one that the settings name, in any mode."""
    settings = read_settings(directory)
    assert settings.directory is not None
    return place(settings.directory, None if directory else settings.shared_directory, settings.trust)


def read_settings(directory: Path | None) -> Settings:
    """Return the settings in any mode, with `directory` in place of theirs if it is given.

    Ends the command with code 2 if they are wrong.
    """
    for text in (*unknown_variables(), *mistakes()):
        print_problem(text)
    environ = dict(os.environ)
    if directory is not None:
        environ[VARIABLES["directory"]] = os.fspath(directory)
    try:
        settings = current_settings(environ)
        return settings._replace(directory=settings.directory or Path(cache_directory(environ)))
    except (SettingsError, NoDirectoryError) as error:
        fail(str(error), code=2)


def key_prefix(text: str) -> str:
    """Return a key, or its first digits, in lower case; refuse other texts."""
    if not text or set(text.lower()) - set("0123456789abcdef"):
        raise click.BadParameter(f"{text!r} is not a key: keys are hexadecimal")
    return text.lower()


@contextmanager
def problems_reported(store: LocalStore) -> Iterator[None]:
    """End the command with a message and code 1 if the index is damaged or the disk refuses."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        damage = "is damaged" if is_damage(error) else "cannot be used"
        fail(f"the index {store.layout.index} {damage}: {error}")
    except BrokenPipeError:  # the reader of the output has closed it: click ends the command
        raise
    except (OSError, StoreError) as error:
        fail(str(error))


@contextmanager
def opened_remote(url: str) -> Iterator[RemoteFiles]:
    """Yield the files of the server `url`; end the command if it is no URL, or the server fails."""
    from cachegraph.remote_url import RemoteURL
    from cachegraph.store.remote.opening import open_files

    try:
        files = open_files(RemoteURL.of(url))
    except ValueError as error:
        fail(f"reading the URL of a server: {error}", code=2)
    try:
        yield files
    except OSError as error:
        fail(str(error))
    finally:
        files.close()


def fail(message: str, code: int = 1) -> NoReturn:
    """Print `message` to standard error and end the command."""
    print_problem(message)
    raise click.exceptions.Exit(code)
