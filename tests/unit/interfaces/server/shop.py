"""Two tools whose effects cannot be taken back, for whatever speaks to a server: one has an effect key, one asks."""

from __future__ import annotations

import toolgate


@toolgate.tool(effects="irreversible", risk_level="low", effect_key="refund:{payment}")
async def refund(payment: str, amount: int = 5) -> str:
    """Refund a payment."""
    return f"{payment}: {amount}"


@toolgate.tool(effects="irreversible", risk_level="medium")
async def send(to: str) -> str:
    """Send a parcel."""
    return f"sent to {to}"


SHOP = [refund, send]
