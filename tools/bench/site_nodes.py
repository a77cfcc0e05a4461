"""A simulation of nodes that ask one server of a site, from what a request costs that server.

The server is a queue: `servers` workers take requests in the order in which they come, each for a fixed
time; an answer travels for `travel` seconds. Every node asks one thing after the other. A request that is not
answered within `timeout` ends the node's questions: its breaker opens, and it compiles for itself.
A node connects with its first request. The server closes a connection that nobody has used for `idle`
seconds.

    warm    the entries are there: a node gets them one by one, and a list of revocations, and reports
            its uses
    cold    nobody has them: the first node takes the lease, builds for `build` seconds and publishes;
            the others ask in turn for the entry and the lease, with growing pauses, until it is there
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import NamedTuple

from cachegraph.store.remote.lease_files import RemoteLeaseFiles

GROWTH = 1.5
"""By which a waiting process multiplies its pauses (single_flight.py)."""

Steps = Generator[float, float, None]
"""A node: yields the seconds that a request takes the server, or minus the seconds for which it sleeps."""
Interval = tuple[float, float]


class NodeLoad(NamedTuple):
    """`nodes` that start within `spread` seconds, each wanting `entries`, on a described server.

    `get`, `put` and `connect` are seconds of one worker; `listening` requests are made around each
    pause. `timeout` is that of CACHEGRAPH_REMOTE's URLs.
    """

    nodes: int
    spread: float
    entries: int
    servers: int
    get: float
    put: float
    travel: float
    timeout: float = 5.0
    build: float = 5.0
    connect: float = 0.0
    listening: int = 0
    idle: float = 30.0


class NodeOutcome(NamedTuple):
    """The result of a simulation.

    It has the requests, the most in one second, the most unanswered at once, the most connections at
    once, the seconds until the last node was done, the 99th percentile of the seconds to an answer, and the
    nodes that gave up.
    """

    requests: int
    busiest_second: int
    at_once: int
    connections: int
    seconds: float
    p99: float
    gave_up: int


def warm(load: NodeLoad) -> Callable[[], Steps]:
    """Return the steps of a node that finds everything."""

    def steps() -> Steps:
        for _ in range(load.entries):
            yield load.get
        yield load.get  # what was revoked?
        yield load.put  # the uses

    return steps


def cold(load: NodeLoad, choose: random.Random) -> Callable[[], Steps]:
    """Return the steps of a node that finds nothing; the nodes share who builds and what is stored."""
    held = stored = False
    pauses = RemoteLeaseFiles.pauses

    def steps() -> Steps:
        nonlocal held, stored
        yield load.get
        pause = 0.0
        while not stored:
            yield load.get  # the leases are listed
            if not held:
                held = True
                yield load.put
                yield -load.build
                for _ in range(load.entries):
                    yield load.put
                stored = True
                yield load.put  # the uses
                return
            yield load.get  # who holds it?
            yield load.get  # stored by now?
            for _ in range(load.listening):
                yield load.get
            pause = min(max(pause * GROWTH, pauses.first), pauses.longest)
            yield -pause * choose.uniform(0.5, 1.0)
        yield from warm(load)()

    return steps


def simulate(load: NodeLoad, node: Callable[[], Steps], choose: random.Random) -> NodeOutcome:
    """Return what comes of the nodes' steps, event after event, in the order of time."""
    free = [0.0] * load.servers
    events = [(choose.uniform(0.0, load.spread), number) for number in range(load.nodes)]
    heapq.heapify(events)
    running = [node() for _ in range(load.nodes)]
    asked: list[Interval] = []
    connected: dict[int, Interval] = {}
    last, gave_up = 0.0, 0
    while events:
        now, number = heapq.heappop(events)
        last = max(last, now)
        step = next(running[number], None)
        if step is None:
            continue
        if step <= 0:
            heapq.heappush(events, (now - step, number))
            continue
        arrived = now + load.travel / 2
        begun = max(arrived, free[0])
        done = begun + step + (0.0 if number in connected else load.connect)
        heapq.heapreplace(free, done)
        answered = done + load.travel / 2
        asked.append((now, answered))
        opened = connected.get(number, (now, now))[0]
        connected[number] = opened, min(answered, now + load.timeout) + load.idle
        if answered - now > load.timeout:
            gave_up += 1
            last = max(last, now + load.timeout)
            continue
        heapq.heappush(events, (answered, number))
    waits = [answered - now for now, answered in asked]
    busiest = max(Counter(int(now) for now, _ in asked).values())
    at_once, connections = most_at_once(asked), most_at_once(connected.values())
    return NodeOutcome(len(asked), busiest, at_once, connections, last, percentile(waits, 0.99), gave_up)


def most_at_once(intervals: Iterable[Interval]) -> int:
    """Return the largest number of the intervals, each from a first to a second number, that overlap."""
    steps = sorted(step for begin, end in intervals for step in ((begin, 1), (end, -1)))
    return max(itertools.accumulate(change for _, change in steps))


def percentile(values: list[float], share: float) -> float:
    """Return the value below which `share` of the values are."""
    ordered = sorted(values)
    return ordered[int(share * (len(ordered) - 1))]


def both(load: NodeLoad, seed: str = "site") -> Iterator[tuple[str, NodeOutcome]]:
    """Yield ("warm", outcome) and ("cold", outcome)."""
    choose = random.Random(seed)
    yield "warm", simulate(load, warm(load), choose)
    yield "cold", simulate(load, cold(load, choose), choose)
