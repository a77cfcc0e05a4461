"""How a function was made, as text and as HTML: complete, and nothing in it is markup."""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

from cachegraph.caching.outcome import CacheInfo
from tests.cachegraph.report.browser import Browser, browser, needs_browser

__all__ = ["browser"]

HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(1)>&amp;\x1b\udc80"
MADE = CacheInfo(
    "miss",
    "never-seen",
    "60e4",
    found={"function": [0, 1], "kernel": [2, 1]},
    seconds={"key": 0.12, "compile": 47.0, "total": 48.004},
    seconds_saved=1.5,
    rewrites=1,
    compilations=2,
)


class Tags(HTMLParser):
    """The tags and the texts of a piece of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.texts.append(data)


def test_text_has_a_line_for_each_fact():
    assert str(MADE).split("\n") == [
        "miss: never-seen",
        "key      60e4",
        "found    function 0 of 1, kernel 2 of 3",
        "seconds  48.00: key 0.12, compile 47.00",
        "saved    1.50 seconds",
        "work     1 rewrite, 2 compilations",
    ]


def test_what_is_not_known_is_not_there():
    assert str(CacheInfo("hit")) == "hit"
    assert Tags(CacheInfo("hit")._repr_html_()).texts == ["outcome", "hit"]


def test_html_has_the_same_facts():
    found = Tags(MADE._repr_html_())
    assert found.tags == {"table", "tbody", "tr", "th", "td"}
    assert [" ".join(pair) for pair in zip(found.texts[2::2], found.texts[3::2], strict=True)] == [
        " ".join(line.split()) for line in str(MADE).split("\n")[1:]
    ]


def test_no_text_is_markup():
    found = Tags(CacheInfo("bypass", HOSTILE, HOSTILE, {HOSTILE: [1, 0]}, {HOSTILE: 1.0})._repr_html_())
    assert found.tags == {"table", "tbody", "tr", "th", "td"}
    assert sum("<script>alert(1)</script>" in text for text in found.texts) == 4
    "".join(found.texts).encode()  # a notebook is a file in UTF-8


def test_a_hit_loads_none_of_it():
    program = "import sys, cachegraph.caching.outcome; print('html' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[3])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"


@needs_browser
def test_a_browser_shows_it_in_the_colours_of_a_dark_page(tmp_path: Path, browser: Browser):
    page = tmp_path / "page.html"
    style = "<style>body { background: #111; color: #eee } tr:nth-child(even) { background: #fff }</style>"
    script = """<pre></pre><script>
for (const cell of document.querySelectorAll("th, td, tr, table")) {
  const { color, backgroundColor } = getComputedStyle(cell);
  document.querySelector("pre").textContent += `${color} on ${backgroundColor};`;
}
</script>"""
    shown = MADE.replace(reason=HOSTILE)._repr_html_()
    page.write_text(f"<!doctype html><meta charset=utf-8>{style}{shown}{script}", encoding="utf-8")
    document = browser.document(page)
    colours = set(document.split("<pre>")[1].split("</pre>")[0].strip(";").split(";"))
    assert colours == {"rgb(238, 238, 238) on rgba(0, 0, 0, 0)"}
    browser.picture(page, "cache-info", 700, 300)
