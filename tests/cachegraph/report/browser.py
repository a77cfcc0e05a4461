"""A headless browser: the document that a page's script made, and a picture of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PICTURES = Path(__file__).resolve().parents[3] / "build" / "pictures"

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


class Browser:
    """A browser with a profile in `folder` and no network."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def document(self, page: Path, anchor: str = "") -> str:
        """Return the document as HTML after its script ran, and after a link to `anchor` was followed."""
        return self._run(f"{page.as_uri()}#{anchor}" if anchor else page.as_uri(), "--dump-dom")

    def picture(self, page: Path, name: str, width: int, height: int) -> Path:
        """Keep a picture of the page in build/pictures, and return its path."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        path = PICTURES / f"{name}.png"
        path.unlink(missing_ok=True)
        self._run(
            page.as_uri(), f"--screenshot={path}", f"--window-size={width},{height}", "--hide-scrollbars"
        )
        return path

    def _run(self, address: str, *options: str) -> str:
        assert CHROMIUM is not None
        common = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self._folder}"]
        quiet = ["--disable-dev-shm-usage", "--no-first-run", "--proxy-server=127.0.0.1:9"]
        environment = {**os.environ, "HOME": str(self._folder), "XDG_CONFIG_HOME": str(self._folder)}
        done = subprocess.run(
            [CHROMIUM, *common, *quiet, *options, address],
            env=environment,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=True,
        )
        return done.stdout


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    """Return a browser of this test's own."""
    folder = tmp_path / "browser"
    folder.mkdir()
    return Browser(folder)
