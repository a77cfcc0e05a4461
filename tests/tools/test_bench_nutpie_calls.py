"""What the bench of nutpie's density makes of what it measures; the measuring takes minutes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.tools.programs import load_program


@pytest.mark.parametrize(("microseconds", "code"), [(2, 1), (1, 0), (0.5, 0)])
def test_a_check_fails_where_the_engine_takes_longer(
    microseconds: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program: Any = load_program("bench/nutpie_calls.py")
    seconds = {"engine": iter([9e-6, 1e-6 * microseconds]), "numba": iter([1e-6, 5e-6])}
    monkeypatch.setattr(program, "find_spec", lambda name: True)
    monkeypatch.setattr(program, "run", lambda way, name: next(seconds[way]))
    monkeypatch.setattr("sys.argv", ["nutpie_calls.py", "--check", "--json", "hierarchical"])
    assert program.main() == code
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"hierarchical": {"engine": 1e-6 * microseconds, "numba": 1e-6}}
    assert bool(printed.err) == bool(code)
