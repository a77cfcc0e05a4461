"""The loop of every program in tools/stress: rounds of random attacks until the time is up.

    python tools/stress/NAME.py [--seconds S] [--rounds N] [--seed TEXT] [--first K]

Each round gets a random generator made of the seed and the round's number, and an empty directory
that goes away. A round returns None, or the fault it found, in words. The loop prints each fault
with the command that repeats its round alone, and the exit code is 1 if there was one. Without
`--seconds` and `--rounds` it runs for a minute.
"""

from __future__ import annotations

import argparse
import random
import secrets
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_SECONDS = 60.0

Round = Callable[[random.Random, Path], str | None]


def run(description: str | None, attack: Round) -> int:
    """Run rounds of `attack` as the command line says, print what they found, and return the exit code."""
    arguments = _arguments(description)
    program = Path(sys.argv[0]).name
    begin = time.monotonic()
    faults = done = 0
    while not _is_over(arguments, done, time.monotonic() - begin):
        number = arguments.first + done
        fault = _one(attack, f"{arguments.seed}:{number}")
        done += 1
        if fault is not None:
            faults += 1
            print(f"round {number}: {fault}", flush=True)
            print(
                f"  again: python tools/stress/{program} --seed {arguments.seed} --first {number} --rounds 1"
            )
    print(f"{program}: {done} rounds, {faults} with a fault, seed {arguments.seed}")
    return 1 if faults or not done else 0


def _one(attack: Round, seed: str) -> str | None:
    with tempfile.TemporaryDirectory(prefix="cachegraph-stress-", ignore_cleanup_errors=True) as directory:
        return attack(random.Random(seed), Path(directory))


def _is_over(arguments: argparse.Namespace, done: int, elapsed: float) -> bool:
    if arguments.rounds is not None:
        return bool(done >= arguments.rounds)
    return bool(done) and elapsed >= arguments.seconds


def _arguments(description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=DEFAULT_SECONDS, help="how long (default: 60)")
    parser.add_argument("--rounds", type=int, help="how many rounds, instead of how long")
    parser.add_argument(
        "--seed", default=secrets.token_hex(4), help="what the rounds are drawn from (default: random)"
    )
    parser.add_argument(
        "--first", type=int, default=0, metavar="K", help="number of the first round (default: 0)"
    )
    return parser.parse_args()
