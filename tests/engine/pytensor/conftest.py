"""The tests of the backend for PyTensor run only if PyTensor is installed."""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("pytensor") is None:
    collect_ignore_glob = ["*test_*.py"]
