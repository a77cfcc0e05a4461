"""A process that prints the keys of the recipes of some numbers, one a line.

python -m tests.cachegraph.pytensor.keys_process FIRST LAST
"""

from __future__ import annotations

import sys

from tests.cachegraph.pytensor.describing import key_of
from tests.cachegraph.pytensor.recipes import build, made


def recipe_key(seed: int, prefix: str = "") -> str:
    """Return the key of the recipe of that number, with `prefix` in the names of its variables."""
    built = build(made(seed), prefix)
    return key_of(built.inputs, built.outputs, updates=built.updates)


if __name__ == "__main__":
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        print(recipe_key(number, *sys.argv[3:]))
