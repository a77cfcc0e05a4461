"""Connections to PostgreSQL whose every statement ends in time, also if the server's machine hangs.

`statement_timeout` is counted by the server, and the operating system acknowledges what a stopped
server does not read. So the client counts, too.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import psycopg
from psycopg.pq import ConnStatus, TransactionStatus

_PAUSE = 0.1  # seconds between two looks at the clock


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that closes itself and raises psycopg.Error if an answer takes too long."""

    longest: float | None = None
    """Seconds; None while it is being made."""

    def wait(self, gen: Any, interval: float = _PAUSE, timeout: float | None = None) -> Any:
        """Return what the generator `gen` of a statement returns. Raises psycopg.Error."""
        try:
            return super().wait(gen, interval, timeout or self.longest)
        except psycopg.Error:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:  # an answer may still come
                self.close()
            raise

    def was_closed(self) -> bool:
        """Tell if the server has closed the connection since the last statement; asks it nothing."""
        with suppress(psycopg.Error):
            self.pgconn.consume_input()  # why it was closed
            self.pgconn.consume_input()  # the end
        return self.pgconn.status != ConnStatus.OK


def connect(url: str, seconds: float) -> BoundedConnection:
    """Return a connection whose every statement takes at most `seconds`. Raises psycopg.Error."""
    milliseconds = int(seconds * 1000)
    made = BoundedConnection.connect(
        url,
        connect_timeout=max(2, round(seconds)),  # psycopg takes whole seconds, and one as two
        options=f"-c statement_timeout={milliseconds} -c lock_timeout={milliseconds}",
        tcp_user_timeout=milliseconds,
        prepare_threshold=None,  # the next transaction may be on another connection of a pooler
    )
    made.longest = seconds
    return made
