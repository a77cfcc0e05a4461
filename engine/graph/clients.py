"""The uses of a variable: which input of which node it is, and which output of the graph."""

from __future__ import annotations

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Variable

Client = tuple[Apply, int]

SMALL = 16
"""Up to so many clients are searched one by one."""


class Output(Op):
    """Stands in `clients` for the graph's own use of a variable as output number `idx`."""

    __props__ = ("idx",)

    def __init__(self, idx: int) -> None:
        self.idx = idx

    def make_node(self, *inputs: Variable) -> Apply:
        """The use of one variable as an output."""
        return Apply(self, inputs, [])


class Clients(list[Client]):
    """The clients of one variable: pairs (node, which input of it).

    `take` and `put` are each other's exact inverse, and take no longer for many clients than for few. Up to `SMALL`
    clients stay in the order in which they came; of more, the last takes the place of one that leaves.
    """

    _places: dict[Client, int] | None = None

    def take(self, client: Client) -> int:
        """Remove `client`; its place. Refuses (ValueError) one that is not there."""
        if len(self) <= SMALL:
            place = self.index(client)
            del self[place]
            self._places = None
            return place
        places = self._up_to_date()
        place = places.pop(client, -1)
        if place < 0:
            raise ValueError(f"Removing a client: {client} is not among the {len(self)} clients")
        last = self.pop()
        if place < len(self):
            self[place] = last
            places[last] = place
        return place

    def put(self, place: int, client: Client) -> None:
        """Undo the `take` that gave `place`."""
        if len(self) < SMALL:
            self.insert(place, client)
            self._places = None
            return
        places = self._up_to_date()
        if place < len(self):
            places[self[place]] = len(self)
            self.append(self[place])
            self[place] = client
        else:
            self.append(client)
        places[client] = place

    def _up_to_date(self) -> dict[Client, int]:
        """The place of each client, where `append` has been noticed only now."""
        places = self._places
        if places is None or len(places) > len(self):
            places = self._places = {}
        for place in range(len(places), len(self)):
            places[self[place]] = place
        return places
