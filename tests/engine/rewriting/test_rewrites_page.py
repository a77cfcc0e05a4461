"""docs/rewrites.md: it names all of PyTensor's rewrites, and its examples are what the engine does."""

import builtins
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import engine.tensor as pt
from engine.assumptions import assume
from engine.graph import equal_computations
from engine.graph.rewrite_query import RewriteDatabaseQuery
from engine.raise_op import Assert
from engine.rewriting import optdb, rewrite_graph
from engine.rewriting.database import RewriteDatabase

PAGE = Path(__file__).resolve().parents[3] / "docs" / "rewrites.md"
SETS = ("canonicalize", "stabilize", "specialize")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| `")
]
VARIABLES = (
    {name: pt.dscalar(name) for name in "abc"}
    | {name: pt.dvector(name) for name in "xyz"}
    | {name: pt.dmatrix(name) for name in "ABC"}
    | {"m": pt.lscalar("m"), "n": pt.lscalar("n"), "k": pt.lvector("k"), "e": pt.fvector("e")}
    | {"p": pt.vector("p", dtype="bool"), "r": pt.tensor("r", shape=(3,))}
    | {"S": pt.tensor("S", shape=(3, 3)), "T": pt.dtensor3("T")}
)


class Names(dict):
    """The names that an example may use."""

    def __missing__(self, name):
        for module in (pt, pt.math, pt.elemwise, builtins):
            if hasattr(module, name):
                return getattr(module, name)
        raise KeyError(name)


NAMES = Names(VARIABLES, assume=assume, Assert=Assert)


def rewritten(text):
    variable = pt.as_tensor_variable(eval(text, {"__builtins__": {}}, NAMES))
    return rewrite_graph(variable, include=("fast_run",), exclude=("fusion", "inplace"))


def names_in(database):
    """Return the names of the rewrites in a database of the engine, and in those that it holds."""
    entries = database.selected(RewriteDatabaseQuery(include=("fast_run",)))
    inner = [entry.rewriter for entry in entries if isinstance(entry.rewriter, RewriteDatabase)]
    return {entry.name for entry in entries}.union(*map(names_in, inner))


# In a process of its own: pytensor.sparse and libraries add rewrites when they are imported.
QUERY = """
import json, sys
from pytensor.compile.mode import optdb
found = {}
for name in sys.argv[1:]:
    (rewriter,) = optdb.query(f"+{name}")
    parts = (rewriter.global_rewriters, rewriter.final_rewriters, rewriter.cleanup_rewriters)
    for item in (*rewriter.get_node_rewriters(), *(item for part in parts for item in part)):
        found.setdefault(item.name, set()).add(name)
print(json.dumps({name: sorted(sets) for name, sets in found.items()}))
"""


def test_the_page_names_every_rewrite_of_pytensor_with_its_sets():
    pytensor = pytest.importorskip("pytensor")
    if f"PyTensor {pytensor.__version__}'s" not in PAGE.read_text(encoding="utf-8"):
        pytest.skip("the page is of another release")
    asked = [sys.executable, "-c", QUERY, *SETS]
    printed = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    found = json.loads(printed.splitlines()[-1])
    assert {row[0].strip("`"): sorted(row[1].split(", ")) for row in ROWS} == found


def test_every_rewrite_that_it_says_is_ours_exists():
    known = names_in(optdb)
    for row in ROWS:
        if not row[3].startswith(("none", "not done")):
            assert set(re.findall(r"`(\w+)`", row[3])) <= known, row


@pytest.mark.parametrize(("name", "example"), [(row[0], row[2].strip("`")) for row in ROWS if row[2]])
def test_an_example_becomes_what_it_says(name, example):
    written, due = example.split(" -> ")
    assert equal_computations([rewritten(written)], [rewritten(due)])
