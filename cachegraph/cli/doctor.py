"""`cachegraph doctor`: a report on the cache and the machine, with advice."""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Sequence

import typer

from cachegraph.cli.options import DirectoryOption, JsonOption, open_placement
from cachegraph.cli.output import print_json, print_line
from cachegraph.environment import settings_in_force
from cachegraph.errors import SettingsError
from cachegraph.object_code.cpu import VARIABLE, levels_up_to, machine_levels
from cachegraph.store.maintenance.diagnosis import Finding, examine
from cachegraph.store.tiers import Placement, Tier
from cachegraph.toolchain import toolchain
from cachegraph.version import __version__


def doctor_command(directory: DirectoryOption = None, as_json: JsonOption = False) -> None:
    """Report on the cache's directories and this machine; exit code 1 if something should be changed."""
    placement = open_placement(directory)
    tiers = [("local", placement.local), *(("shared", tier) for tier in placement.shared)]
    found = [(name, tier, examine(tier)) for name, tier in tiers]
    machine = _machine()
    if as_json:
        print_json(_document(placement, found, machine))
    else:
        _print(placement, found, machine)
    if any(finding.advice for _, _, findings in found for finding in findings):
        raise typer.Exit(1)


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


def _document(
    placement: Placement, found: Sequence[tuple[str, Tier, list[Finding]]], machine: dict[str, str]
) -> dict[str, object]:
    tiers = [
        {
            "tier": name,
            "directory": str(tier.directory),
            "findings": [finding._asdict() for finding in findings],
        }
        for name, tier, findings in found
    ]
    return {"notice": placement.notice, "tiers": tiers, "machine": machine}


def _print(
    placement: Placement, found: Sequence[tuple[str, Tier, list[Finding]]], machine: dict[str, str]
) -> None:
    if placement.notice:
        print_line(f"{placement.notice}\n")
    for name, tier, findings in found:
        print_line(f"{name}: {tier.directory}")
        for finding in findings:
            print_line(f"  {finding.what:16} {finding.found}")
            if finding.advice:
                print_line(f"  {'':16} -> {finding.advice}")
        print_line()
    for name, value in machine.items():
        print_line(f"{name:18} {value}")
