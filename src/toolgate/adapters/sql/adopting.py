"""Taking over the accounts and tokens of a database from before they carried marks: once, on somebody's word."""

from __future__ import annotations

from typing import NamedTuple

from toolgate.kernel.context import SYSTEM_PROJECT

IS_TOLD = (
    f"SELECT 1 FROM events WHERE project_id='{SYSTEM_PROJECT}' AND "
    "(type LIKE 'account.%' OR type LIKE 'token.%' OR type LIKE 'session.%') LIMIT 1"
)
"""Whether accounts or tokens were ever changed here by a version that marks them: what has no mark then is forged."""


class Adopted(NamedTuple):
    """Which accounts were taken over, how many tokens, and how many rows without a mark were not."""

    accounts: tuple[str, ...] = ()
    tokens: int = 0
    refused: int = 0
