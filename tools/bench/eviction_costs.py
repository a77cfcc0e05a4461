"""Writes eviction_costs.json: what entries of real models cost and how large they are, for
tools/bench/eviction.py.

Compiled are the demo's two models, each with 0 to 7 more powers of its regressors, and the density
of each alone, on an empty cache each in turn: about a minute. Of every entry are recorded: key,
level, bytes, the seconds of building it and of loading it, and the entries that it refers to.
Entries that several models share are recorded once.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COSTS = Path(__file__).with_name("eviction_costs.json")
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "grunfeld")]


def main() -> None:
    """Compile, and write what it cost."""
    entries: dict[str, dict[str, Any]] = {}
    models = {}
    with tempfile.TemporaryDirectory(prefix="cachegraph-bench-") as directory:
        os.environ["CACHEGRAPH_DIR"] = directory
        for name, inputs, outputs in variants():
            models[name] = compiled(name, inputs, outputs)
            entries.update(stored(Path(directory)))
            print(name, len(entries), file=sys.stderr)
    COSTS.write_text(json.dumps({"models": models, "entries": entries}, indent=1, sort_keys=True) + "\n")


def variants() -> list[tuple[str, Any, Any]]:
    """Return (name, inputs, outputs) of every model."""
    import engine
    from model import LIKELIHOODS, log_prior, parameter_shapes, predicted
    from panel import read_panel

    pt = engine.tensor
    panel = read_panel()
    found = []
    for likelihood in LIKELIHOODS:
        for powers in range(8):
            shapes = parameter_shapes(len(panel.firms))
            named = {name: pt.vector(name) if shape else pt.scalar(name) for name, shape in shapes.items()}
            slopes = [pt.scalar(f"slope_{power + 2}") for power in range(powers)]
            mean = predicted(named, panel)
            for power, slope in enumerate(slopes):
                mean = mean + slope * pt.as_tensor_variable(panel.value ** (power + 2))
            scaled = (pt.as_tensor_variable(panel.invest) - mean) * pt.exp(-named["log_noise"])
            density = log_prior(named) + LIKELIHOODS[likelihood](scaled)
            inputs = [*named.values(), *slopes]
            found.append((f"{likelihood} {powers} density", inputs, [density]))
            found.append(
                (f"{likelihood} {powers} gradient", inputs, [density, *engine.grad(density, inputs)])
            )
    return found


def compiled(name: str, inputs: Any, outputs: Any) -> str:
    """Compile a model and return its key."""
    import engine

    key = engine.function(inputs, outputs, name=name, on_unused_input="ignore").cache_info.key
    assert key is not None
    return key


def stored(directory: Path) -> dict[str, dict[str, Any]]:
    """Return what the cache in `directory` holds, by key."""
    from cachegraph.store.local.store import LocalStore

    store = LocalStore(directory)
    references: dict[bytes, list[str]] = {}
    for digest, other in store.catalogue.entry_references():
        references.setdefault(digest, []).append(other.hex())
    found = {
        entry.hex: {
            "level": entry.level,
            "bytes": entry.size,
            "build": round(entry.build_seconds, 6),
            "load": round(entry.load_seconds, 6),
            "references": sorted(references.get(entry.digest, [])),
        }
        for entry in store.scan()
    }
    store.close()
    return found


if __name__ == "__main__":
    main()
