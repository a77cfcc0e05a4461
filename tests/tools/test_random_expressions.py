"""tools/stress/graphs.py finds nothing in hundreds of expressions, and what is made wrong by hand."""

import subprocess
import sys

import pytest

from tests.tools.programs import TOOLS

pytestmark = pytest.mark.stress
PROGRAM = TOOLS / "stress" / "graphs.py"

WRONG = {
    "a softplus wrong by 1e-9": """
from engine.gradient import stable_logs
right = stable_logs._log_sigmoid
stable_logs._log_sigmoid = lambda x: right(x) * (1 + 1e-9)
""",
    "a form that only PyTensor has": """
from engine.gradient import stable_forms
from engine.scalar import exponential
del stable_forms._FORMS[exponential.Log1p]
""",
}
ATTACKS = """
import random, sys
sys.path.insert(0, sys.argv[1])
import graphs
faults = (graphs.attack(random.Random(f"wrong:{number}"), None) for number in range(20))
print(next(filter(None, faults), None))
"""


def test_hundreds_of_expressions_are_right():
    done = subprocess.run(
        [sys.executable, PROGRAM, "--seed", "hundreds", "--rounds", "15"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", WRONG)
def test_what_is_made_wrong_by_hand_is_found(name):
    if "PyTensor" in name:
        pytest.importorskip("pytensor")
    done = subprocess.run(
        [sys.executable, "-c", WRONG[name] + ATTACKS, PROGRAM.parent], capture_output=True, text=True
    )
    assert done.stdout.startswith("expression "), done.stdout + done.stderr
