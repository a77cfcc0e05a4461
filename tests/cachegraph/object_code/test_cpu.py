"""CPU levels: those that the machine has, none that it has not, and what is asked for."""

import builtins
import json
import platform
from collections.abc import Iterator
from pathlib import Path

import llvmlite.binding as llvm
import pytest
from click.testing import CliRunner

from cachegraph.cli.app import app
from cachegraph.errors import SettingsError
from cachegraph.object_code import cpu
from cachegraph.settings import current_settings

V3 = ("abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe")
V4 = (*V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")


@pytest.fixture(autouse=True)
def x86(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    cpu.machine_levels.cache_clear()
    yield
    cpu.machine_levels.cache_clear()


def give(monkeypatch: pytest.MonkeyPatch, *features: str) -> None:
    monkeypatch.setattr(cpu, "host_features", lambda: frozenset(features))


def test_a_cpu_with_all_features_has_the_level_and_without_one_it_has_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    give(monkeypatch, *V3)
    assert cpu.machine_levels() == ("x86-64-v3", "x86-64")
    for missing in V3:
        cpu.machine_levels.cache_clear()
        give(monkeypatch, *(name for name in V3 if name != missing))
        assert cpu.machine_levels() == ("x86-64",)


def test_a_cpu_with_all_of_avx_512_has_the_best_level_and_without_a_part_of_it_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    give(monkeypatch, *V4)
    assert cpu.machine_levels() == ("x86-64-v4", "x86-64-v3", "x86-64")
    for missing in V4:
        cpu.machine_levels.cache_clear()
        give(monkeypatch, *(name for name in V4 if name != missing))
        assert cpu.machine_levels() == (("x86-64",) if missing in V3 else ("x86-64-v3", "x86-64"))


def test_a_level_says_how_wide_its_vectors_are_and_if_products_and_sums_are_fused() -> None:
    assert [cpu.vector_bits(level) for level in cpu.known_levels()] == [128, 256, 512]
    assert [cpu.has_fma(level) for level in cpu.known_levels()] == [False, True, True]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="others have one level")
@pytest.mark.parametrize("name", V4)
def test_a_feature_that_the_host_has_is_one_that_llvm_finds(name: str) -> None:
    listed = llvm.get_host_cpu_features()
    assert (name in cpu.host_features()) == listed[{"abm": "lzcnt", "bmi1": "bmi"}.get(name, name)]


@pytest.mark.parametrize("listing", [None, b"", b"processor : 0\n", b"flags", b"flags : \xff avx\n"])
def test_where_nobody_can_tell_the_weakest_level_is_used(
    listing: bytes | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "cpuinfo"
    if listing is not None:
        path.write_bytes(listing)
    monkeypatch.setattr(builtins, "open", lambda _, mode: path.open(mode))
    assert cpu.machine_levels() == ("x86-64",)


def test_another_architecture_has_one_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert cpu.machine_levels() == cpu.known_levels() == ("generic",)


def test_a_weaker_level_can_be_asked_for_and_one_that_is_not_there_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    give(monkeypatch, *V3)
    assert cpu.levels_up_to("") == cpu.levels_up_to("x86-64-v3") == ("x86-64-v3", "x86-64")
    assert cpu.levels_up_to("x86-64") == ("x86-64",)
    cpu.machine_levels.cache_clear()
    give(monkeypatch)
    with pytest.raises(SettingsError, match=r"CACHEGRAPH_CPU: found 'x86-64-v3'; set it to x86-64"):
        cpu.levels_up_to("x86-64-v3")


def test_a_level_that_there_is_not_is_no_setting() -> None:
    assert current_settings({"CACHEGRAPH_DIR": "/a", "CACHEGRAPH_CPU": "x86-64"}).cpu == "x86-64"
    with pytest.raises(SettingsError, match="CACHEGRAPH_CPU: found 'native'"):
        current_settings({"CACHEGRAPH_DIR": "/a", "CACHEGRAPH_CPU": "native"})


@pytest.mark.parametrize(
    ("features", "asked", "shown"),
    [
        (V4, "", "x86-64-v4"),
        (V4, "x86-64-v3", "x86-64-v3 (as CACHEGRAPH_CPU says; the machine has x86-64-v4)"),
        (V3, "", "x86-64-v3"),
        ((), "", "x86-64"),
        (V3, "x86-64", "x86-64 (as CACHEGRAPH_CPU says; the machine has x86-64-v3)"),
        (
            (),
            "x86-64-v3",
            "x86-64 (reading CACHEGRAPH_CPU: found 'x86-64-v3'; set it to x86-64, or unset it)",
        ),
    ],
)
def test_the_doctor_says_which_level_is_used(
    features: tuple[str, ...], asked: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, *features)
    monkeypatch.setenv("CACHEGRAPH_CPU", asked)
    found = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    assert found["machine"]["cpu"] == shown
