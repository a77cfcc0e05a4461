"""Lists of clients: removal and its exact inverse, for few and many clients."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.graph.tables import SMALL, Clients
from tests.engine.graph.small_ops import PLAIN, follow


def clients_of(count):
    return [(follow(PLAIN()).owner, 0) for _ in range(count)]


@given(st.integers(1, 3 * SMALL), st.lists(st.tuples(st.integers(0, 10**6), st.booleans()), max_size=60))
def test_taking_and_putting_are_each_others_inverse(count, steps):
    clients = Clients(clients_of(count))
    past = []
    for choice, is_addition in steps:
        if is_addition or not clients:
            past.append((list(clients), None, None))
            clients.append(clients_of(1)[0])
        else:
            before, client = list(clients), clients[choice % len(clients)]
            past.append((before, clients.take(client), client))
            assert sorted(map(id, clients)) == sorted(id(c) for c in before if c is not client)
    while past:
        before, place, client = past.pop()
        if client is None:
            clients.take(clients[-1])
        else:
            clients.put(place, client)
        assert clients == before


def test_few_clients_keep_their_order():
    found = clients_of(SMALL)
    clients = Clients(found)
    clients.take(found[3])
    assert clients == found[:3] + found[4:]


@pytest.mark.parametrize("count", [2, 2 * SMALL])
def test_a_client_that_is_not_there_is_refused(count):
    with pytest.raises(ValueError):
        Clients(clients_of(count)).take(clients_of(1)[0])
