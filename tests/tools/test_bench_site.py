"""The bench of a site's servers: its short form, and the queue of the simulation."""

import json
import random
import subprocess
import sys

import pytest

from tests.tools.programs import TOOLS, load_program

bench = load_program("bench/site.py")
nodes = bench.site_nodes


def load(**changed):
    usual = {"nodes": 100, "spread": 0.0, "entries": 1, "servers": 2, "get": 0.01, "put": 0.01, "travel": 0.0}
    return nodes.NodeLoad(**{**usual, **changed})


def run(wanted, steps):
    return nodes.simulate(wanted, steps, random.Random(1))


def test_a_queue_takes_the_work_divided_by_the_workers():
    outcome = run(load(), nodes.warm(load()))
    assert outcome.requests == 300
    assert outcome.seconds == pytest.approx(300 * 0.01 / 2)
    assert outcome.gave_up == 0


def test_one_node_waits_for_nobody_and_answers_travel():
    wanted = load(nodes=1, entries=9, travel=0.5)
    outcome = run(wanted, nodes.warm(wanted))
    assert outcome.seconds == pytest.approx(11 * 0.51)
    assert outcome.p99 == pytest.approx(0.51)


def test_who_is_not_answered_in_time_asks_no_more():
    wanted = load(nodes=1000, servers=1, timeout=5.0)
    outcome = run(wanted, lambda: iter([wanted.get]))
    assert abs(outcome.gave_up - 500) <= 1
    assert outcome.requests == 1000


def test_a_node_connects_once_and_the_server_closes_what_is_idle():
    wanted = load(nodes=20, servers=20, connect=1.0, idle=5.0)
    outcome = run(wanted, nodes.warm(wanted))
    assert outcome.seconds == pytest.approx(1.03)
    assert (outcome.connections, outcome.at_once) == (20, 20)
    spread = load(nodes=100, spread=1000.0, idle=5.0)
    assert run(spread, nodes.warm(spread)).connections < 10
    kept = spread._replace(idle=2000.0)
    assert run(kept, nodes.warm(kept)).connections == 100


def test_of_cold_nodes_one_builds_and_the_others_poll_until_it_is_done():
    wanted = load(nodes=50, entries=9, get=0.001, put=0.001, build=20.0)
    outcome = run(wanted, nodes.cold(wanted, random.Random(2)))
    assert 20.0 < outcome.seconds < 24.0
    polls = outcome.requests - 50 * 13
    assert 49 * 3 * 10 < polls < 49 * 3 * 30
    assert outcome.gave_up == 0


def test_growth_with_the_rows_and_wrong_bytes_are_problems():
    right = {"costs": {"redis": {"wrong": 0}}, "rows": {"growth": 1.5}}
    assert bench.problems(right) == []
    wrong = {"costs": {"redis": {"wrong": 2}}, "rows": {"growth": 1.6}}
    assert len(bench.problems(wrong)) == 2


def test_a_get_of_other_bytes_is_counted(tmp_path):
    with bench.own_key(tmp_path), bench.on_directory(tmp_path) as subject:
        subject.writer.put = lambda key, artifact: None
        assert bench._sizes(subject, 20)["wrong"] >= 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(set(bench.KINDS) - {"s3"}))
def test_the_short_form_measures_every_kind(kind):
    if bench.lacking(kind):
        pytest.skip(f"{bench.lacking(kind)} is not installed")
    command = [sys.executable, str(TOOLS / "bench" / "site.py"), "--short", "--only", kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["costs"][kind]["wrong"] == 0
    assert found["costs"][kind]["get of 20 kB"]["p50"] > 0
    assert (kind in ("directory", "bundle")) == (kind not in found["nodes"])
