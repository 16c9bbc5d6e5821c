"""Carry a question to a web address, signed as Standard Webhooks says. The answer comes back through the gate.

A delivery that fails is tried again with growing pauses, under the same message id; one that keeps failing becomes
a dead letter, which the audit and `dead_letters` show. Nothing that is sent is secret: it is the masked artifact.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import httpx2
import orjson
from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook

from toolgate.errors import DeliveryError, UsageError
from toolgate.kernel.approval import Approval
from toolgate.kernel.artifact import artifact_of
from toolgate.ports.channel import Answer

log = logging.getLogger("toolgate.webhook")
PAUSES_S: Final = (1.0, 5.0, 30.0, 120.0, 300.0)
"""How long to wait after each failure; after the last one it is given up."""
TIMEOUT_S: Final = 15.0
KEPT: Final = 1000
_NO_USE: Final = frozenset({400, 401, 403, 404, 405, 410, 413, 422})
"""Answers that trying again would not change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A question that could not be delivered."""

    approval_id: str
    url: str
    attempts: int
    error: str
    at: datetime


class WebhookChannel:
    """Posts every question to `url`. `secret` is the Standard Webhooks secret, `whsec_` and base64.

    The receiver must answer 2xx; what it answers is not read, so nobody who can fake an answer decides anything.
    """

    def __init__(
        self,
        url: str,
        secret: str,
        *,
        pauses_s: tuple[float, ...] = PAUSES_S,
        timeout_s: float = TIMEOUT_S,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        if not url.startswith(("https://", "http://")):
            raise UsageError("A webhook needs an http:// or https:// address.")
        try:
            self._signer = Webhook(secret)
        except (ValueError, RuntimeError, EmptyWebhookSecretError) as error:
            raise UsageError(f"The webhook secret cannot be used: {error}.") from None
        self._url = url
        self._pauses_s = pauses_s
        self._timeout_s = timeout_s
        self._now = now
        self.dead_letters: deque[DeadLetter] = deque(maxlen=KEPT)

    async def ask(self, approval: Approval) -> Answer | None:
        """Deliver the question; raise DeliveryError where it had to be given up. The answer comes another way."""
        # Asked again of other people, it is another message: receivers drop a message id they have seen.
        kind = "approval.escalated" if approval.escalated else "approval.requested"
        message_id = f"{approval.id}.escalated" if approval.escalated else approval.id
        body = await asyncio.to_thread(self._body, approval, kind)  # a long question takes long to be made safe
        attempts, error = 0, ""
        async with httpx2.AsyncClient(timeout=self._timeout_s, follow_redirects=False) as client:
            for pause_s in (*self._pauses_s, None):
                attempts += 1
                error, is_final = await self._post(client, message_id, body)
                if not error:
                    return None
                if is_final or pause_s is None:
                    break
                log.info("webhook for approval %s failed (%s); trying again", approval.id, error)
                await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))  # spreads retries
        letter = DeadLetter(approval_id=approval.id, url=self._url, attempts=attempts, error=error, at=self._now())
        self.dead_letters.append(letter)
        raise DeliveryError(f"The webhook was given up after {attempts} attempts: {error}.", attempts=attempts)

    def _body(self, approval: Approval, kind: str) -> str:
        data = artifact_of(approval).to_dict()
        event = {"type": kind, "timestamp": approval.created_at.isoformat(), "data": data}
        return orjson.dumps(event).decode()

    async def _post(self, client: httpx2.AsyncClient, message_id: str, body: str) -> tuple[str, bool]:
        """Return what went wrong, if anything, and whether trying again is of no use."""
        at = self._now()
        headers = {
            "content-type": "application/json",
            "webhook-id": message_id,
            "webhook-timestamp": str(int(at.timestamp())),
            "webhook-signature": self._signer.sign(message_id, at, body),
        }
        try:
            response = await client.post(self._url, content=body.encode(), headers=headers)
        except (httpx2.HTTPError, OSError) as error:
            return type(error).__name__, False
        if response.is_success:
            return "", False
        return f"status {response.status_code}", response.status_code in _NO_USE
