"""Single flight: if several threads or processes miss one key, one builds it and the others wait for the
entry.

A key is claimed in layers, the nearest first; in each layer only one claimant gets to
the next:

    the threads of this process     a table in memory
    the processes of this node      a lock on a file of this node      store/claims/node_lock.py
    hosts that share a directory    a lease there                      store/claims/lease.py
    nodes that share a server       a lease there                      store/claims/lease.py

Single flight saves work; no result depends on it. A layer that fails is skipped, a waiting process
builds after a limit, and whoever gets a claim looks the key up again before building. A hit claims
nothing. A builder that raises releases its claims; a killed one loses them, to the kernel or by
missing heartbeats.

Nobody waits forever, and no two wait for each other:

- A call claims those of its keys that are free, in the order of their digests, and builds them together.
  Only after releasing them does it wait for the others, one at a time: no call waits for a key while it
  holds another.
- A build may itself ask for keys while its own key is claimed. Such waits lead from a function to its Ops,
  kernels and called functions, from an Op to Ops in its graph, from a log density to graphs that are
  rewritten for it, and from a kernel to nothing. These lie within what asks for them, which they do not
  contain, so the waits form no circle. A thread that asks for a key that it is building does not wait.
- All other waits (two processes whose builds want each other's key, a directory that is a nearer tier for
  one and a farther one for another) end after a limit: PATIENCE times the recorded build cost of the key,
  or of the costliest recent key of its level, since the builder may share its processor; UNKNOWN_WAIT if
  nothing is recorded. The waits of one call are counted from its beginning.

A key that is asked for within a build is claimed on this node alone: other nodes that want the same
function wait for the outer key, and each lease would cost a server five requests and more. So two
nodes that build different functions with a common kernel at the same moment both compile it.

A waiting process checks if the key is stored by now, because a portion stays claimed until all of it is
built, and retries the claim. Of the processes of a node, only the one that waits for another node asks
what lies beyond the node. Nobody waits for a key that cannot be stored (the disk is full,
the artifact too large): its builder marks the claim, and from then on everybody builds that key at
once, until it is found stored.

A child forked meanwhile holds none of the claims, and releases none.

An interrupt (Ctrl-C, a signal handler that raises) may end a call between any two steps, also while
it releases claims. The release is then repeated once. What a second interrupt leaves is released
with the claim object, since a claim lasts as long as its object.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager

from cachegraph.key import CacheKey
from cachegraph.logger import logger
from cachegraph.store.protocol import Claim, Holder, Pauses, Unkept

PATIENCE = 10.0
LEAST_WAIT = 30.0  # seconds, as the others are
MOST_WAIT = 1800.0
UNKNOWN_WAIT = 120.0
_GROWTH = 1.5

IsStored = Callable[[CacheKey, bool], bool]


def longest_wait(cost: float | None) -> float:
    """Return how many seconds to wait for a build that took `cost` seconds before; None means unknown."""
    return UNKNOWN_WAIT if cost is None else min(max(PATIENCE * cost, LEAST_WAIT), MOST_WAIT)


class SingleFlight:
    """The turns of builders, among the threads of this process and all who share the `claims` (key ->
    layers).

    `cost` returns what building a key took before. `is_stored` tells if it is stored by now, on this node
    or, if its second argument is True, anywhere. Thread-safe.
    """

    def __init__(
        self,
        claims: Callable[[CacheKey], Sequence[Claim]],
        cost: Callable[[CacheKey], float | None],
        is_stored: IsStored,
    ) -> None:
        self._claims = claims
        self._cost = cost
        self._is_stored = is_stored
        self._table = _Table()

    def turns(
        self, keys: Iterable[CacheKey], unkept: Collection[CacheKey] = ()
    ) -> Generator[list[CacheKey], None, None]:
        """Yield all of `keys` in portions: look each up again, and build those that are still missing.

        A portion is claimed until the next is asked for. Close the iterator to release the claims. Add keys
        that were built but could not be stored to `unkept`.
        """
        begin = time.monotonic()
        within = self._table.has_seat_here()
        free: list[_Flight] = []
        busy: list[tuple[_Flight, Holder]] = []
        with _released(free, unkept):
            for key in sorted(keys, key=lambda key: key.digest):
                flight = self._flight(key, within)
                free.append(flight)  # first, so that an interrupt leaves nothing claimed
                holder = flight.acquire()
                if holder is not None:
                    flight.release()
                    free.pop()
                    busy.append((flight, holder))
            if free:
                yield [flight.key for flight in free]
        for flight, holder in busy:
            yield from self._wait(flight, holder, begin, unkept)

    def _wait(
        self, flight: _Flight, holder: Holder, begin: float, unkept: Collection[CacheKey]
    ) -> Iterator[list[CacheKey]]:
        """Yield the key of `flight` once it is claimed or stored, or once waiting took too long."""
        key = flight.key
        most = longest_wait(self._cost(key))
        logger("cachegraph").info(
            "%s %s is being built by %s: waiting for %.0f s at most", key.level, key.hex, holder, most
        )
        with _released([flight], unkept):
            if not flight.acquire_within(begin + most - time.monotonic(), self._is_stored):
                logger("cachegraph").info(
                    "waited for %.0f s for %s %s: building it here", most, key.level, key.hex
                )
            yield [key]

    def _flight(self, key: CacheKey, within: bool = False) -> _Flight:
        """Return the claims on `key`; `within` another build, only those of this node."""
        mine = _Seat(self._table, key.digest)
        if mine.is_taken_here():
            return _Flight(key, ())
        claims = self._claims_on(key)
        return _Flight(key, (mine, *(claim for claim in claims if not (within and claim.may_be_elsewhere))))

    def _claims_on(self, key: CacheKey) -> Sequence[Claim]:
        try:
            return self._claims(key)
        except Exception as error:
            logger("cachegraph").debug("%s %s cannot be claimed: %s", key.level, key.hex, error)
            return ()


class _Flight:
    """The claims on one key, acquired one after the other."""

    def __init__(self, key: CacheKey, claims: Sequence[Claim]) -> None:
        self.key = key
        self._claims = claims
        self._passed = 0
        self._marked = False

    def acquire(self) -> Holder | None:
        """Acquire the remaining claims; return the holder of the first that is taken, or None if all are
        acquired."""
        while self._passed < len(self._claims):
            holder = self._ask(self._claims[self._passed])
            if holder is not None:
                return holder
            self._passed += 1
        return None

    def acquire_within(self, seconds: float, is_stored: IsStored) -> bool:
        """Retry for that many seconds; return True if all claims are acquired or the key is stored."""
        import random  # no hit on a stored entry waits

        end = time.monotonic() + seconds
        pause = 0.0
        while self.acquire() is not None:
            taken = self._claims[self._passed]
            if is_stored(self.key, taken.may_be_elsewhere):
                return True
            left = end - time.monotonic()
            if left <= 0:
                return False
            pause = min(max(pause * _GROWTH, taken.pauses.first), taken.pauses.longest)
            # random, so that waiting processes do not retry in step
            self._wait(taken, min(left, pause * random.uniform(0.5, 1.0)))
        return True

    def release(self, unkept: bool = False) -> None:
        """Release the claims, the farthest first, and mark them if the build could not be stored."""
        self._passed = 0
        for claim in reversed(self._claims):
            if unkept or self._marked:
                claim.mark(unkept)
            claim.release()

    def _wait(self, claim: Claim, seconds: float) -> None:
        try:
            claim.wait(seconds)
        except Exception as error:  # the next try skips the layer
            logger("cachegraph").debug("%s %s cannot be waited for: %s", self.key.level, self.key.hex, error)

    def _ask(self, claim: Claim) -> Holder | None:
        try:
            return claim.acquire()
        except Unkept:
            self._marked = True
            return None
        except Exception as error:  # if one layer cannot be claimed, the others still can
            logger("cachegraph").debug("%s %s cannot be claimed: %s", self.key.level, self.key.hex, error)
            return None


class _Table:
    """The seats of the keys that threads of this process are building; empty in a forked child."""

    def __init__(self) -> None:
        self._begin()

    def take(self, digest: bytes, seat: _Seat) -> _Seat:
        """Give `digest` to `seat` if no living seat has it, and return the seat that has it.

        Raises Unkept for a digest that is marked so.
        """
        with self._locked():
            if digest in self._unkept:
                raise Unkept(digest.hex())
            reference = self._held.get(digest)
            holder = None if reference is None else reference()
            if holder is None:
                self._held[digest] = weakref.ref(seat)
            return holder or seat

    def holder(self, digest: bytes) -> _Seat | None:
        """Return the seat of `digest`, or None if it is free."""
        with self._locked():
            reference = self._held.get(digest)
            return None if reference is None else reference()

    def has_seat_here(self) -> bool:
        """Return True if this thread is building some key."""
        here = threading.get_ident()
        with self._locked():
            held = [reference() for reference in self._held.values()]
        return any(seat is not None and seat._thread == here for seat in held)

    def free(self, digest: bytes, seat: _Seat) -> None:
        """Free `digest` if `seat` holds it."""
        with self._locked():
            reference = self._held.get(digest)
            if reference is not None and reference() in (seat, None):
                del self._held[digest]

    def mark(self, digest: bytes, unkept: bool) -> None:
        """Note if the build of `digest` could not be stored."""
        with self._locked():
            (self._unkept.add if unkept else self._unkept.discard)(digest)

    def _locked(self) -> threading.RLock:
        if self._pid != os.getpid():
            self._begin()
        return self._lock

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._held: dict[bytes, weakref.ref[_Seat]] = {}
        self._unkept: set[bytes] = set()


class _Seat:
    """The claim on one key among the threads of this process."""

    pauses = Pauses()
    may_be_elsewhere = False

    def __init__(self, table: _Table, digest: bytes) -> None:
        self._table = table
        self._digest = digest
        self._thread = threading.get_ident()
        self._since = time.time()

    def is_taken_here(self) -> bool:
        """Return True if this thread is already building the key."""
        holder = self._table.holder(self._digest)
        return holder is not None and holder._thread == threading.get_ident()

    def acquire(self) -> Holder | None:
        """Take the seat, or return its holder; raises Unkept if waiting for it is useless."""
        holder = self._table.take(self._digest, self)
        return None if holder is self else Holder("", os.getpid(), holder._since)

    def wait(self, seconds: float) -> None:
        """Sleep: the next try tells whether the seat is free."""
        time.sleep(seconds)

    def mark(self, unkept: bool) -> None:
        """Note if the build could not be stored."""
        self._table.mark(self._digest, unkept)

    def release(self) -> None:
        """Give the seat back, if it was taken; a forked child has none."""
        self._table.free(self._digest, self)


@contextmanager
def _released(flights: Sequence[_Flight], unkept: Collection[CacheKey]) -> Iterator[None]:
    """Release the `flights` that are there at the end, also if an interrupt comes meanwhile."""
    try:
        yield
    finally:
        try:
            _release_all(flights, unkept)
        except BaseException:
            _release_all(flights, unkept)
            raise


def _release_all(flights: Sequence[_Flight], unkept: Collection[CacheKey]) -> None:
    for flight in flights:
        flight.release(flight.key in unkept)
