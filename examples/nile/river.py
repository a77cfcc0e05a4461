"""The annual flow of the Nile at Aswan, read from the CSV beside this file."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

DATA = Path(__file__).with_name("nile.csv")


def read_flow(path: Path = DATA) -> np.ndarray:
    """Return the flow of each year in `path`, a CSV with the columns year and flow: float64, in 10^8 cubic
    metres.
    """
    with path.open(newline="") as file:
        return np.array([float(row["flow"]) for row in csv.DictReader(file)])
