"""A program of tools/ that a test loads leaves no trace in which modules are found."""

import sys

from tests.tools.programs import TOOLS, load_program


def test_the_folder_of_a_program_and_its_neighbours_are_not_found_after_loading():
    before = list(sys.path)
    program = load_program("bench/store.py")
    assert program.large_store.__file__ == str(TOOLS / "bench" / "large_store.py")
    assert sys.path == before
    assert "large_store" not in sys.modules
