"""The page of a report: one file without a network, whose only script is ours.

page.html is the frame, with places for the style, the script, the graphs and the data. Texts in the data
were written by others, and may hold `</script>`: JSON is written without `<`, `>` and `&`, and the script
makes text nodes of them. The page's policy (Content-Security-Policy) names the digest of the script: no other
runs.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from pathlib import Path

from cachegraph.store.paths import unique_name

_HERE = Path(__file__).parent
_PLACE = re.compile("@(SCRIPT_DIGEST|STYLE|GRAPHS|DATA|SCRIPT)@")
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def page(document: object, graphs: str) -> str:
    """Return the page of `document`, plain data, and of `graphs`, HTML. Raises ValueError for a NaN."""
    frame, style, script = (
        (_HERE / name).read_text(encoding="utf-8") for name in ("page.html", "page.css", "page.js")
    )
    places = {
        "SCRIPT_DIGEST": _digest(script),
        "STYLE": style,
        "GRAPHS": graphs,
        "DATA": _json(document),
        "SCRIPT": script,
    }
    return _PLACE.sub(lambda match: places[match[1]], frame)


def write_page(path: Path, text: str) -> None:
    """Write `text` to `path`, whole or not at all; into a pipe or device as it is. Raises OSError."""
    if path.exists() and not path.is_file():  # replacing /dev/null by a file would harm everybody
        path.write_text(text, encoding="utf-8")
        return
    path = Path(os.path.realpath(path))
    unfinished = path.with_name(unique_name(f".{path.name}."))
    try:
        unfinished.write_text(text, encoding="utf-8")
        os.replace(unfinished, path)
    except BaseException:  # KeyboardInterrupt, too
        unfinished.unlink(missing_ok=True)
        raise


def _json(document: object) -> str:
    """Return `document` as JSON in ASCII that no HTML parser takes for markup."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def _digest(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
