"""The packages' loggers, which a process without anything to say does not import."""

from __future__ import annotations

import logging
import subprocess
import sys

from cachegraph.logger import logger


def test_a_package_has_the_logger_of_its_name() -> None:
    assert logger("engine") is logging.getLogger("engine")


def test_logging_is_imported_for_the_first_message_only() -> None:
    program = (
        "import sys, cachegraph.logger as l; "
        "print('logging' in sys.modules); l.logger('engine'); print('logging' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
