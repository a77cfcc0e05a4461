"""The distributions of scipy.stats are their names and the release; what was done to one is not overlooked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint import encode, fingerprint

ROOT = Path(__file__).resolve().parents[3]
OFFERED = [
    getattr(stats, name)
    for name in sorted(vars(stats))
    if hasattr(getattr(stats, name), "_random_state") and hasattr(getattr(stats, name), "rvs")
]


def likelihood(x: Any) -> Any:
    return stats.norm.logpdf(x).sum() + stats.multivariate_normal.logpdf(x, np.zeros(2))


def test_all_distributions_are_described_and_told_apart() -> None:
    assert len(OFFERED) > 100
    assert len({encode(distribution) for distribution in OFFERED}) == len(OFFERED)


def test_a_likelihood_of_distributions_is_the_same_in_another_process() -> None:
    program = (
        "from cachegraph.fingerprint import fingerprint\n"
        "from tests.cachegraph.fingerprint.test_distributions import likelihood\n"
        "print(fingerprint(likelihood).hex())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == fingerprint(likelihood).hex()


def test_a_distribution_that_was_changed_is_another_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = encode(stats.norm)
    with monkeypatch.context() as patch:
        patch.setattr(stats.norm, "b", 1.0)
        assert encode(stats.norm) != plain
    for name, found in (
        ("_logpdf", lambda x: x),
        ("_ppfvec", np.vectorize(lambda x: x)),
        ("_random_state", np.random.RandomState(1)),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(stats.norm, name, found)
            with pytest.raises(Unfingerprintable):
                encode(stats.norm)
    stats.norm.__dict__.pop("_logpdf", None)  # where it was before, the class has it
    assert encode(stats.norm) == plain


def test_frozen_distributions_and_those_of_users_are_refused() -> None:
    class Own(stats.rv_continuous):
        pass

    for distribution in (stats.norm(0.0, 1.0), type(stats.norm)(name="norm"), Own(name="norm")):
        with pytest.raises(Unfingerprintable):
            encode(distribution)
