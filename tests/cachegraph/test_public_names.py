"""What `import cachegraph` gives."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import cachegraph

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = sorted(cachegraph._MODULE_OF)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_a_class_or_a_function(name: str) -> None:
    assert callable(getattr(cachegraph, name))
    assert name in dir(cachegraph)


def test_names_are_the_same_objects_as_in_their_modules() -> None:
    from cachegraph.caching.counters import counters
    from cachegraph.key import CacheKey

    assert cachegraph.counters is counters
    assert cachegraph.CacheKey is CacheKey


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Cash'"):
        cachegraph.Cash  # noqa: B018


def test_the_counters_are_a_function_after_the_cache_was_imported_in_a_fresh_process() -> None:
    program = "import cachegraph.cache, cachegraph; print(type(cachegraph.counters()).__name__)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "Counters"


def test_the_version_is_that_of_the_distribution() -> None:
    try:
        installed = version("cachegraph")
    except PackageNotFoundError:
        pytest.skip("cachegraph is tested as it lies, not installed")
    assert cachegraph.__version__ == installed
