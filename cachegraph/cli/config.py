"""`cachegraph config`: each setting, its value, and where it came from."""

from __future__ import annotations

from collections.abc import Iterator

import click

from cachegraph.cli.options import command, json_option
from cachegraph.cli.output import print_json, print_line, print_problem, print_table
from cachegraph.declared_settings import SETTINGS, Setting, shown
from cachegraph.environment import unknown_variables
from cachegraph.errors import NoDirectoryError, SettingsError
from cachegraph.named_tuples import NamedTuple
from cachegraph.settings import DEFAULT, ENVIRONMENT, cache_directory, current_settings, given, mistakes
from cachegraph.settings_files import PROJECT_FILE, project_file, user_file


class _ShownSetting(NamedTuple):
    """A setting, its variable, its value as text, and its source."""

    name: str
    variable: str
    value: str
    source: str


@command("config")
@json_option
def config_command(as_json: bool) -> None:
    """Show each setting, its value, and its source: environment, project's file, user's file, or default.

    Exit code 1 if a variable or a file sets something that does not count.
    """
    rows = [
        _ShownSetting(one.name, one.variable, _value(one, text), source) for one, (text, source) in _given()
    ]
    problems = [*unknown_variables(), *mistakes(), *_refused()]
    files = {"project": project_file(), "user": user_file()}
    paths = {whose: None if file is None else file.path for whose, file in files.items()}
    if as_json:
        settings = {row.name: row._asdict() for row in rows}
        print_json({"settings": settings, "files": paths, "problems": problems})
    else:
        _print(rows, paths)
    for problem in problems if not as_json else ():
        print_problem(problem)
    if problems:
        raise click.exceptions.Exit(1)


def _given() -> Iterator[tuple[Setting, tuple[str, str]]]:
    found = given()
    return ((setting, found[setting.name]) for setting in SETTINGS)


def _value(setting: Setting, text: str) -> str:
    """Return the value as text: a directory whole, a URL without its password."""
    if setting.name == "directory":
        try:
            return cache_directory()
        except (SettingsError, NoDirectoryError):
            return text
    return shown(text or setting.default)


def _refused() -> Iterator[str]:
    """Yield why the environment gives no settings, if it does not."""
    try:
        current_settings()
    except (SettingsError, NoDirectoryError) as error:
        yield str(error)


def _print(rows: list[_ShownSetting], paths: dict[str, str | None]) -> None:
    words = {path: f"{whose}'s file" for whose, path in paths.items() if path is not None}
    words |= {DEFAULT: DEFAULT, ENVIRONMENT: ENVIRONMENT}
    columns = {"setting": "left", "from": "left", "value": "left"}
    print_table(columns, ((row.name, words[row.source], row.value) for row in rows))
    print_line()
    print_line(f"user's file: {paths['user'] or 'none'}")
    print_line(f"project's file: {paths['project'] or f'none (no {PROJECT_FILE} here or above sets any)'}")
