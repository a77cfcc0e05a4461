"""The page of a report in a browser: what its script draws, and that texts of others stay texts."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from cachegraph import Artifact, Cache
from cachegraph.report.contents import MOST_LISTED, Gathering
from cachegraph.report.page import page, write_page
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.directory import CacheDirectory
from cachegraph.store.tiers import place
from tests.cachegraph.report.browser import Browser, browser, needs_browser

__all__ = ["browser"]

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">&lt; @DATA@"


def contents(directory: Path, log: Path | None = None) -> Any:
    """Return the document of a report, as a browser parses it."""
    gathering = Gathering(CacheDirectory(place(directory, None, "private")), log)
    return json.loads(json.dumps(gathering.document(), allow_nan=False))


def use(directory: Path, namespace: str = "toyc", *summaries: str) -> None:
    """Build an entry with each summary, and use it once; count a bypass."""
    cache = Cache(directory, namespace=namespace)
    for number, summary in enumerate(summaries):
        for _ in range(2):
            artifact = Artifact(b"code" * 100, {}, {"parse": 0.5, "emit": float(number)}, summary)
            cache.get_or_build({"source": summary}, lambda artifact=artifact: artifact, len)  # type: ignore[misc]
    cache.get_or_build({"source": object()}, lambda: b"code", len)
    cache.flush()


def written(folder: Path, document: Any, graphs: str = "") -> Path:
    path = folder / "report.html"
    write_page(path, page(document, graphs))
    return path


class Texts(HTMLParser):
    """The texts of a document by the id of the section that holds them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.sections: dict[str, str] = {}
        self.tags: list[str] = []
        self._section = "head"
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        place = dict(attrs).get("id")
        if place:
            self._section = place

    def handle_data(self, data: str) -> None:
        self.sections[self._section] = self.sections.get(self._section, "") + data + " "


def test_the_data_in_the_page_are_what_was_gathered_and_hold_no_markup() -> None:
    text = page({"what": HOSTILE, "lone": "\ud800"}, "")
    (data,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert json.loads(data) == {"what": HOSTILE, "lone": "\ud800"}
    assert text.count("<script") == 2
    assert "<img" not in text


def test_places_are_filled_once_whatever_the_graphs_say() -> None:
    text = page({"a": "@STYLE@"}, "<p>@DATA@ @SCRIPT@</p>")
    assert "<p>@DATA@ @SCRIPT@</p>" in text
    assert '{"a":"@STYLE@"}' in text


def test_a_page_replaces_an_older_one_whole_or_not_at_all(tmp_path: Path) -> None:
    write_page(tmp_path / "a.html", "one")
    write_page(tmp_path / "a.html", "two")
    assert [each.name for each in tmp_path.iterdir()] == ["a.html"]
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_page(tmp_path / "folder", "three")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.html", "folder"]


def test_a_link_is_followed_and_a_pipe_is_written_to_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "link.html").symlink_to(tmp_path / "target.html")
    write_page(tmp_path / "link.html", "through a link")
    assert (tmp_path / "target.html").read_text() == "through a link"
    assert (tmp_path / "link.html").is_symlink()
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_page(tmp_path / "pipe", "into a pipe")
    assert os.read(reader, 100) == b"into a pipe"
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


def test_a_page_can_be_written_to_the_pipe_that_standard_output_is() -> None:
    program = "from pathlib import Path; from cachegraph.report.page import write_page; write_page(Path('/dev/stdout'), 'page')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"page"


def test_an_interrupted_page_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_page(tmp_path / "page.html", "page")
    assert list(tmp_path.iterdir()) == []


@needs_browser
def test_the_browser_draws_what_the_cache_holds(
    cache_directory: Path, tmp_path: Path, browser: Browser
) -> None:
    use(cache_directory, "toyc", "first program", "second program")
    drawn = Texts(browser.document(written(tmp_path, contents(cache_directory)))).sections
    assert "50.0 %" in drawn["cards"]
    assert "hits: 2 of 4 look-ups" in drawn["cards"]
    assert "never-seen" in drawn["reasons"]
    assert "unfingerprintable" in drawn["reasons"]
    assert "toyc/entry 100.0 %" in drawn["levels"]
    assert drawn["costliest"].index("second program") < drawn["costliest"].index("first program")
    assert "5 decisions" in drawn["chosen"] or "4 decisions" in drawn["chosen"]
    assert drawn["problems"].strip() == ""


@needs_browser
def test_the_cost_of_eviction_is_the_time_of_building_again(
    cache_directory: Path, tmp_path: Path, browser: Browser
) -> None:
    use(cache_directory, "toyc", "first program")
    store = LocalStore(cache_directory)
    store.delete([entry.digest for entry in store.scan()], "to honour a limit")
    store.close()
    use(cache_directory, "toyc", "first program")
    drawn = Texts(browser.document(written(tmp_path, contents(cache_directory)))).sections
    assert "1 look-up found that the entry had been evicted; building again took 500 ms." in drawn["eviction"]
    assert "evicted" in drawn["reasons"]
    assert "would have missed" in drawn["eviction"]


def count_on(directory: Path, *days: int) -> None:
    """Count a hit on each of `days` since 1970."""
    store = LocalStore(directory)
    with store.database.writing() as connection:
        connection.executemany(
            "INSERT INTO activity VALUES (?, 'kernel', 'hit', '', 1, 1.0)", [(day,) for day in days]
        )
    store.close()


def test_days_on_which_nothing_happened_are_days_too(cache_directory: Path) -> None:
    use(cache_directory, "toyc", "first program")
    today = contents(cache_directory)["days"][-1]["day"]
    number = (date.fromisoformat(today) - date(1970, 1, 1)).days
    count_on(cache_directory, number - 3)
    days = contents(cache_directory)["days"]
    assert [(date.fromisoformat(day["day"]) - date(1970, 1, 1)).days for day in days] == [
        *range(number - 3, number + 1)
    ]
    assert [day["hits"] for day in days] == [1, 0, 0, 1]
    count_on(cache_directory, 5, 2_000_000)  # years apart: clocks were wrong
    assert [day["hits"] for day in contents(cache_directory)["days"]] == [1, 1, 1, 1]


@needs_browser
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_a_day_is_the_same_in_all_time_zones(
    zone: str, cache_directory: Path, tmp_path: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(cache_directory, "toyc", "first program")
    document = contents(cache_directory)
    [day] = document["days"]
    monkeypatch.setenv("TZ", zone)
    document["made"] = 1_700_000_000.0
    drawn = Texts(browser.document(written(tmp_path, document))).sections
    assert "(UTC)" in drawn["days"]
    assert day["day"] in drawn["days"]
    assert ("2023-11-15" if zone == "Pacific/Kiritimati" else "2023-11-14") in drawn["origin"]


@needs_browser
def test_texts_of_others_are_shown_and_not_obeyed(
    cache_directory: Path, tmp_path: Path, browser: Browser
) -> None:
    use(cache_directory, "toyc", HOSTILE)
    html = browser.document(written(tmp_path, contents(cache_directory)))
    drawn = Texts(html)
    assert "<title>cachegraph report</title>" in html
    assert "</script><script>document.title" in drawn.sections["costliest"]
    assert drawn.tags.count("img") == 0


def test_what_hides_in_a_text_or_turns_its_direction_is_escaped(cache_directory: Path) -> None:
    use(cache_directory, "toyc", "a \u202egnp.exe \u200b\x1b[2J" + "\x00" * 400)
    what = contents(cache_directory)["costliest"][0]["what"]
    assert what.startswith("a \\u202egnp.exe \\u200b\\x1b[2J\\x00")
    assert len(what) == 301


@needs_browser
def test_the_policy_of_the_page_runs_no_other_script(
    tmp_path: Path, browser: Browser, cache_directory: Path
) -> None:
    intruder = "<script>document.title='owned'</script><p onclick=1 id=kept>kept</p>"
    html = browser.document(written(tmp_path, contents(cache_directory), intruder))
    assert "<title>cachegraph report</title>" in html
    assert "kept" in Texts(html).sections["kept"]
    assert 'data-drawn="yes"' in html


@needs_browser
def test_an_empty_cache_has_a_page_that_says_so(
    cache_directory: Path, tmp_path: Path, browser: Browser
) -> None:
    drawn = Texts(browser.document(written(tmp_path, contents(cache_directory)))).sections
    assert "There are no entries." in drawn["costliest"]
    assert "Nothing is counted yet" in drawn["days"]
    assert "No run is recorded" in drawn["timeline"]


@needs_browser
@pytest.mark.slow
def test_pictures_of_a_filled_page_are_kept_in_light_and_dark(
    cache_directory: Path, tmp_path: Path, browser: Browser
) -> None:
    use(cache_directory, "toyc", *(f"program {number}" for number in range(30)))
    use(cache_directory, "dsl", *(f"module {number}" for number in range(10)))
    document = contents(cache_directory)
    for theme in ("light", "dark"):
        path = written(tmp_path, document)
        change_script(path, 'let chosen = "system"', f'let chosen = "{theme}"')
        picture = browser.picture(path, f"report-{theme}", 1280, 2900)
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size > 50_000
    assert browser.picture(path, "report-phone", 500, 3400).stat().st_size > 50_000


def change_script(path: Path, old: str, new: str) -> None:
    """Change the page's script, and the digest in its policy."""
    text = path.read_text()
    script = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)[-1]
    assert old in script
    text = text.replace(digest_of(script), digest_of(script.replace(old, new)))
    path.write_text(text.replace(script, script.replace(old, new)))


def digest_of(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


@needs_browser
def test_a_click_sorts_and_a_word_filters_the_entries(
    cache_directory: Path, tmp_path: Path, browser: Browser
) -> None:
    use(cache_directory, "toyc", "first program", "second program", "other")
    path = written(tmp_path, contents(cache_directory))
    acts = (
        "document.querySelectorAll('#costliest th')[8].click();"
        "document.querySelectorAll('#costliest th')[8].click();"
    )
    last = 'document.documentElement.dataset.drawn = "yes";'
    change_script(path, last, acts + last)
    sorted_by_text = Texts(browser.document(path)).sections["costliest"]
    assert re.findall("first program|second program|other", sorted_by_text) == [
        "first program",
        "other",
        "second program",
    ]
    word = "const box = document.querySelector('#costliest input'); box.value = 'PROGRAM';"
    change_script(path, acts, f"{word} box.dispatchEvent(new Event('input'));")
    filtered = Texts(browser.document(path)).sections["costliest"]
    assert re.findall("first program|second program|other", filtered) == ["second program", "first program"]


@pytest.mark.slow
@needs_browser
def test_a_hundred_thousand_entries_are_a_page_that_opens(tmp_path: Path, browser: Browser) -> None:
    one = {"key": "0" * 12, "level": "kernel", "what": "w" * 300, "bytes": 1, "build": 1.0, "steps": {}}
    rest = {"load": 0.1, "uses": 1, "last_used": 0.0}
    document = contents(tmp_path / "none")
    document["costliest"] = [{**one, **rest}] * MOST_LISTED
    document["levels"][0]["entries"] = 100_000
    path = written(tmp_path, document)
    assert path.stat().st_size < 2**20
    drawn = Texts(browser.document(path)).sections
    assert f"The {MOST_LISTED} of 100,000 entries that took longest to build." in drawn["costliest"]
