"""Clearing: the whole store goes at once, damaged or not, under running jobs, which begin a new one."""

from __future__ import annotations

import os
import shutil

from cachegraph.errors import StoreError
from cachegraph.store.paths import CLEARING_PREFIX, Layout, SharedLayout, unique_name


def clear(layout: Layout | SharedLayout) -> bool:
    """Remove the store and return whether there was one; raises StoreError when it cannot be removed.

    It is renamed first: nobody meets a store that is half there.
    """
    doomed = layout.directory / unique_name(CLEARING_PREFIX)
    try:
        os.rename(layout.root, doomed)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError("clearing", layout.root, str(error)) from error
    try:
        shutil.rmtree(doomed)
    except OSError as error:
        raise StoreError("removing", doomed, f"{error}; remove it by hand") from error
    return True
