"""The entry points that pyproject.toml declares, for a checkout whose installation is older than they are."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytensor
import pytest

from cachegraph.pytensor.errors import UnsupportedPyTensor
from engine.pytensor.registration import OLDEST, check_release

ROOT = Path(__file__).parents[3]


def _is_known_to_the_engine() -> bool:
    try:
        check_release()
    except UnsupportedPyTensor:
        return False
    return True


needs_engine = pytest.mark.skipif(
    not _is_known_to_the_engine(),
    reason=f"PyTensor {pytensor.__version__} is older than the engine's {OLDEST}",
)


def declared(directory: Path) -> str:
    """Write a distribution with these entry points; return the directory to put on sys.path."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        groups = tomllib.load(file)["project"]["entry-points"]
    info = directory / "declared-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: declared\nVersion: 0\n")
    rows = (
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in groups.items()
    )
    (info / "entry_points.txt").write_text("\n".join(rows))
    return str(directory)
