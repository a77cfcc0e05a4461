"""The Grunfeld panel, read from the CSV beside this file and standardised."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

DATA = Path(__file__).with_name("grunfeld.csv")
Vector = np.ndarray


@dataclass(frozen=True)
class Panel:
    """One row a firm and year: `firm` (int64, an index into `firms`), the others float64 of mean 0 and
    deviation 1.
    """

    firms: tuple[str, ...]
    firm: Vector
    invest: Vector
    value: Vector
    capital: Vector


def read_panel(path: Path = DATA) -> Panel:
    """Return the panel in `path`, a CSV with the columns firm, invest, value and capital."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    firms = tuple(dict.fromkeys(row["firm"] for row in rows))
    columns = (standardised([float(row[name]) for row in rows]) for name in ("invest", "value", "capital"))
    return Panel(firms, np.array([firms.index(row["firm"]) for row in rows]), *columns)


def standardised(column: list[float]) -> Vector:
    """Return the column with mean 0 and standard deviation 1."""
    values = np.array(column)
    return (values - values.mean()) / values.std()
