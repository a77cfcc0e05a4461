"""The tests of nutpie's functions run only if nutpie is installed."""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("nutpie") is None:
    collect_ignore_glob = ["*test_*.py"]
