"""Deliveries to a real server: signed, repeated, given up and told."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

import toolgate
from toolgate.adapters.channels.webhook import WebhookChannel
from toolgate.errors import DeliveryError, UsageError
from toolgate.testing.conformance.rows import an_approval
from toolgate.testing.patience import until

SECRET = "whsec_" + base64.b64encode(b"a secret of some length!").decode()


class Receiver(ThreadingHTTPServer):
    """Answers with the statuses it is given, one after the other, and then 204."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.got: list[tuple[dict[str, str], bytes]] = []
        super().__init__(("127.0.0.1", 0), _Handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), name="receiver", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook"

    def stop(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append((dict(self.headers.items()), body))
        status = self.server.statuses.pop(0) if self.server.statuses else 204
        self.send_response(status)
        if status == 307:
            self.send_header("location", "http://127.0.0.1:9/")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()


def channel(receiver: Receiver, **options: Any) -> WebhookChannel:
    return WebhookChannel(receiver.url, SECRET, **{"pauses_s": (0.001, 0.001), **options})


async def test_a_question_arrives_signed_and_brings_no_answer(receiver: Receiver) -> None:
    approval = an_approval(arguments={"path": "a"}, claim="trust me")
    assert await channel(receiver).ask(approval) is None
    headers, body = receiver.got[0]
    told = Webhook(SECRET).verify(body, headers)
    assert (told["type"], told["data"]["request_id"]) == ("approval.requested", "a1")
    assert told["data"]["arguments"] == {"path": "a"}
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(body + b" ", headers)


async def test_a_failed_delivery_is_repeated_under_the_same_id(receiver: Receiver) -> None:
    receiver.statuses = [500, 503]
    await channel(receiver).ask(an_approval())
    assert len(receiver.got) == 3
    assert {headers["webhook-id"] for headers, _ in receiver.got} == {"a1"}


@pytest.mark.parametrize(("statuses", "attempts"), [([500] * 9, 3), ([410], 1), ([307] * 9, 3)])
async def test_what_cannot_be_delivered_becomes_a_dead_letter(
    receiver: Receiver, statuses: list[int], attempts: int
) -> None:
    receiver.statuses = list(statuses)
    hook = channel(receiver)
    with pytest.raises(DeliveryError) as caught:
        await hook.ask(an_approval())
    assert caught.value.attempts == attempts == len(receiver.got)
    (letter,) = hook.dead_letters
    assert (letter.approval_id, letter.attempts, letter.error) == ("a1", attempts, f"status {statuses[0]}")


async def test_an_unreachable_receiver_is_a_dead_letter_in_the_audit_and_the_call_stays_open() -> None:
    @toolgate.tool(risk_level="medium")
    async def send() -> None: ...

    hook = WebhookChannel("http://127.0.0.1:9/hook", SECRET, pauses_s=())
    async with toolgate.open("memory://", tools=[send], approver=hook) as gate:
        asked = await gate.call("send", wait=False)

        async def told() -> list[Any]:
            return [event for event in await gate.events() if event.type == "approval.undelivered"]

        await until(told)
        (event,) = await told()
        assert (event.data["channel"], event.data["attempts"]) == ("WebhookChannel", 1)
        assert (await gate.approvals.get(str(asked.approval_id))).is_pending


async def test_an_escalated_question_is_another_message(receiver: Receiver) -> None:
    await channel(receiver).ask(an_approval(escalated=True))
    headers, body = receiver.got[0]
    assert (headers["webhook-id"], json.loads(body)["type"]) == ("a1.escalated", "approval.escalated")


@pytest.mark.parametrize(("url", "secret"), [("ftp://x", SECRET), ("https://x", ""), ("https://x", "whsec_")])
def test_settings_that_cannot_work_are_refused(url: str, secret: str) -> None:
    with pytest.raises(UsageError):
        WebhookChannel(url, secret)
