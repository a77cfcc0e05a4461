"""Prints the page docs/language.md: where PyTensor's tests and the engine differ, and why.

Run as `python tools/pytensor_language/page.py > docs/language.md`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from explanations import EXPLAINED, INTERNAL
from explanations.left_out import LEFT_OUT

from pytensor_tests.explained import ExplainedDifference

BEGINNING = """# PyTensor's tests on the engine

`python tools/pytensor_language CHECKOUT --directory RUNS` runs the tests of PyTensor (release 3.3.0, a
checkout of its repository) with `import pytensor` giving the engine's names, and prints what became of each:
how many passed, which names are missing, which differ. This page lists the tests that differ, by the reason;
`python tools/pytensor_language/page.py` prints it. A part in square brackets is what a test says. A test that
differs counts as not passed
([decision 0144](decisions/0144-what-pytensors-tests-ask-beside-the-language.md)).
"""


def main() -> int:
    """Print the page, and return the exit code."""
    print(BEGINNING)
    print("## Differences that stay\n")
    print("\n".join(lines(EXPLAINED)))
    print("\n## Internals of PyTensor's, which measure nothing\n")
    print("\n".join(lines(INTERNAL)))
    print("\n## Files that are not run\n")
    print("\n".join(f"- {reason}: `{pattern}`" for pattern, reason in LEFT_OUT.items()))
    return 0


def lines(differences: Iterable[ExplainedDifference]) -> list[str]:
    """Return a line for each reason, with its tests."""
    by_reason: dict[str, dict[str, None]] = {}
    for each in differences:
        by_reason.setdefault(each.reason, {})[shown(each)] = None
    return [f"- {reason}: {', '.join(tests)}" for reason, tests in sorted(by_reason.items())]


def shown(difference: ExplainedDifference) -> str:
    """Return the tests of a difference, and the part of what they say."""
    said = f" [{difference.message}]" if difference.message else ""
    return f"`{difference.tests.removeprefix('tests/')}{said}`"


if __name__ == "__main__":
    sys.exit(main())
