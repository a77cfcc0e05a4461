"""`cachegraph doctor`: a report on the cache, its servers and the machine, with advice."""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import click

from cachegraph.cli.options import command, directory_option, json_option, open_placement, read_settings
from cachegraph.cli.output import print_json, print_line
from cachegraph.environment import settings_in_force
from cachegraph.errors import SettingsError
from cachegraph.object_code.cpu import VARIABLE, levels_up_to, machine_levels
from cachegraph.settings import Settings
from cachegraph.store.maintenance.diagnosis import Finding, examine
from cachegraph.store.tiers import Placement
from cachegraph.store.trust import Trust
from cachegraph.toolchain import toolchain
from cachegraph.version import __version__

Examined = tuple[str, str, list[Finding]]
"""The kind of a place (local, shared, server, signatures), its name, and the findings."""


@command("doctor")
@directory_option
@json_option
def doctor_command(directory: Path | None, as_json: bool) -> None:
    """Report on the cache's directories and servers and this machine; exit code 1 if something should be
    changed.

    A server that does not answer is reported and needs no change: compiles go on without it. With --dir, only
    that directory is examined.
    """
    placement = open_placement(directory)
    tiers = [("local", placement.local), *(("shared", tier) for tier in placement.shared)]
    found = [(name, str(tier.directory), examine(tier)) for name, tier in tiers]
    found += [] if directory else _servers()
    found += _signatures(read_settings(directory))
    machine = _machine()
    if as_json:
        print_json(_document(placement, found, machine))
    else:
        _print(placement, found, machine)
    if any(finding.advice for _, _, findings in found for finding in findings):
        raise click.exceptions.Exit(1)


def _servers() -> list[Examined]:
    settings = read_settings(None)
    if not settings.remotes:
        return []
    from cachegraph.store.maintenance.remote_diagnosis import examine_remote

    trust = Trust.on_servers(settings.trust)
    return [("server", url.location, examine_remote(url, trust)) for url in settings.remotes]


def _signatures(settings: Settings) -> list[Examined]:
    """Return whose signatures are believed, where the settings ask for any."""
    if not settings.remotes and settings.trust.partition(":")[0] not in ("group", "signed"):
        return []
    from cachegraph.store.maintenance.signatures import examine_signatures

    return [("signatures", f"CACHEGRAPH_TRUST is {settings.trust}", examine_signatures(settings.trust))]


def _machine() -> dict[str, str]:
    return {
        "cachegraph": __version__,
        **toolchain(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.release()}",
        "cpu": _cpu_level(),
    }


def _cpu_level() -> str:
    """Return the best CPU level whose code runs here, and the requested one if it differs."""
    best, asked = machine_levels()[0], settings_in_force()[0].cpu
    try:
        level = levels_up_to(asked)[0]
    except SettingsError as error:
        return f"{best} ({error})"
    return best if level == best else f"{level} (as {VARIABLE} says; the machine has {best})"


def _document(placement: Placement, found: Sequence[Examined], machine: dict[str, str]) -> dict[str, object]:
    tiers = [
        {
            "tier": name,
            "directory": place,
            "findings": [finding._asdict() for finding in findings],
        }
        for name, place, findings in found
    ]
    return {"notice": placement.notice, "tiers": tiers, "machine": machine}


def _print(placement: Placement, found: Sequence[Examined], machine: dict[str, str]) -> None:
    if placement.notice:
        print_line(f"{placement.notice}\n")
    for name, place, findings in found:
        print_line(f"{name}: {place}")
        for finding in findings:
            print_line(f"  {finding.what:16} {finding.found}")
            if finding.advice:
                print_line(f"  {'':16} -> {finding.advice}")
        print_line()
    for name, value in machine.items():
        print_line(f"{name:18} {value}")
