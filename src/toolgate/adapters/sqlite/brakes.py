"""Reading the stored brakes from SQLite, within whatever transaction the connection is in."""

from __future__ import annotations

import sqlite3

from toolgate.adapters.sql.brakes import LATER, Later, Watch, serial_of
from toolgate.kernel.brake import Brakes

_STORED = """
SELECT (SELECT value FROM settings WHERE name='mode'), (SELECT seq FROM chain_heads WHERE project_id='_system')
"""


def stored_brakes(connection: sqlite3.Connection, watch: Watch) -> Brakes:
    """Return the stored brakes, as far as they are to be believed; the chain is looked into only where it grew."""
    newest = watch.newest
    text, head = connection.execute(_STORED).fetchone()
    known = watch.known(text, head)
    if known is not None:
        return known
    found = connection.execute(LATER.format("?"), (serial_of(text),) * 2).fetchone()
    return watch.believe(text, Later(*(found or ())), newest=newest, at=head)
