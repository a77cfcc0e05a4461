"""Sizes, durations and ages."""

from __future__ import annotations

import pytest

from cachegraph.units import (
    format_age,
    format_duration,
    format_seconds,
    format_size,
    parse_duration,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("4096", 4096), ("5GB", 5_000_000_000), ("1.5 MiB", 1_572_864), ("10k", 10_000), ("7 b", 7)],
)
def test_a_size_is_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1", "5XB", "5GB extra", "nan", "1e9"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size such as 5GB"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90d", 7_776_000), ("12h", 43_200), ("2w", 1_209_600), ("1.5m", 90)]
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "90", "d", "90 days ago", "-1d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration such as 90d"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_999, "1.0 MB"),
        (5_400_000_000, "5.4 GB"),
        (2e15, "2000.0 TB"),
    ],
)
def test_a_size_is_shown(size: float, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (2e-5, "20 us"),
        (0.0123, "12.3 ms"),
        (4.567, "4.57 s"),
        (600, "10 min"),
        (9000, "2.5 h"),
        (-2, "-2 s"),
    ],
)
def test_a_time_span_is_shown(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(-5, "now"), (30, "now"), (300, "5 min"), (10_800, "3 h"), (1e6, "12 d")]
)
def test_an_age_is_shown(seconds: float, text: str) -> None:
    assert format_age(seconds) == text


@pytest.mark.parametrize("text", ["0.5s", "59s", "1m", "36h", "90d", "400d"])
def test_a_duration_is_written_as_it_is_read(text: str) -> None:
    assert format_duration(parse_duration(text)) == text


@pytest.mark.parametrize("text", ["9" * 400, "9" * 30 + "TB", "9" * 400 + "w"])
def test_what_is_beyond_all_sizes_and_times_is_refused(text: str) -> None:
    parse = parse_duration if text.endswith("w") else parse_size
    with pytest.raises(ValueError, match="beyond all that there is"):
        parse(text)
