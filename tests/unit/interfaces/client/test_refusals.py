"""Servers that refuse, break off, lie or flood: every one of them ends in an error that says what to do."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.unit.interfaces.client.listener import Asked, always, in_turn, listening, problem, reply

from toolgate import Status, errors
from toolgate.client import Client
from toolgate.errors import (
    AnswerLostError,
    BadAnswerError,
    InvalidIdError,
    ServerBusyError,
    ServerError,
    ServerUnreachableError,
    ToolgateError,
    UsageError,
)

DAY = timedelta(days=1)
TOKEN = "tg_correct-horse-battery-5"
MODE = reply(200, b'{"success": true, "mode": "NORMAL"}')
COMMENT = problem(409, "decision_conflict", "Too late.")


def client(url: str, **options: Any) -> Client:
    return Client(url, token=TOKEN, project="demo", **{"retry_s": 0.0, "timeout_s": 5.0, **options})


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (problem(400, "invalid_request", "limit: too small"), UsageError, "limit"),
        (problem(401, "not_signed_in", "Make a token."), errors.NotSignedInError, "token"),
        (problem(403, "not_allowed", "ann may not."), errors.NotAllowedError, "ann"),
        (problem(404, "not_found", "Nothing here."), errors.NotFoundError, "Nothing"),
        (problem(409, "decision_conflict", "Late."), errors.DecisionConflictError, "Late"),
        (problem(409, "grant_changed", "Late."), errors.GrantChangedError, "Late"),
        (problem(409, "undo_failed", "Changed."), errors.ToolUndoError, "Changed"),
        (problem(409, "something_new", "Late."), errors.ConflictError, "Late"),
        (problem(409, "conflict", "Late.", decided="odd", tool_status=7), errors.ConflictError, "Late"),
        (problem(413, "too_large", "Too large."), UsageError, "Send less"),
        (problem(421, "wrong_host", "Not me."), ServerError, "allowed_hosts"),
        (problem(429, "rate_limited", "Slow down.", "Retry-After: 7"), ServerBusyError, "Slow"),
        (problem(500, "server_error", "Broken."), ServerError, "Broken"),
        (problem(503, "store_unavailable", "No store."), ServerError, "Try again"),
        (reply(502, b"<html>Bad gateway</html>", media="text/html"), ServerError, "502"),
        (reply(404, b"<html>Not found</html>", media="text/html"), BadAnswerError, "not a Toolgate server"),
        (reply(302, b"", "Location: http://elsewhere.test/"), BadAnswerError, "final address"),
        (reply(200, b"[]"), BadAnswerError, "same version"),
        (reply(200, b'{"mode": "PARTY"}'), BadAnswerError, "same version"),
        (reply(200, b"\xff\xfe"), BadAnswerError, "same version"),
        (reply(200, gzip.compress(b"{}"), "Content-Encoding: gzip"), BadAnswerError, "compressed"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", AnswerLostError, "may have been"),
        (b"", AnswerLostError, "may have been"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{", AnswerLostError, "complete"),
    ],
)
async def test_what_is_wrong_is_told_by_its_class(answer: bytes, kind: type[ToolgateError], says: str) -> None:
    async with listening(always(answer)) as server, client(server.url) as ann:
        with pytest.raises(kind, match=says) as caught:
            await ann.mode()
        assert type(caught.value) is kind
        assert TOKEN not in str(caught.value)


async def test_a_server_says_when_to_come_back() -> None:
    async with listening(always(problem(429, "rate_limited", "Slow.", "Retry-After: 7"))) as server:
        async with client(server.url) as ann:
            with pytest.raises(ServerBusyError) as caught:
                await ann.mode()
        assert (caught.value.retry_after_s, caught.value.status) == (7.0, 429)


async def test_what_a_server_says_cannot_paint_the_terminal() -> None:
    answer = problem(403, "not_allowed", "\x1b[2J\x1b[31mYou\r\nare \u202eadmin" + "x" * 100_000)
    async with listening(always(answer)) as server, client(server.url) as ann:
        with pytest.raises(errors.NotAllowedError) as caught:
            await ann.mode()
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) <= 2000


async def test_nobody_there_is_told_with_what_to_do() -> None:
    async with client(f"http://127.0.0.1:{free_port()}") as ann:
        with pytest.raises(ServerUnreachableError, match="toolgate serve"):
            await ann.mode()
    async with client("https://nowhere.invalid") as ann:
        with pytest.raises(ServerUnreachableError, match="Check the address"):
            await ann.mode()


async def test_a_flood_is_not_read() -> None:
    sent = 0

    async def flood(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
            sent += 0x10000
            await writer.drain()

    async with listening(flood) as server, client(server.url, max_answer_bytes=100_000) as ann:
        with pytest.raises(BadAnswerError, match="larger than"):
            await ann.mode()
    assert sent < 50 * 2**20


async def test_an_answer_that_trickles_for_ever_is_given_up() -> None:
    async def trickle(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999999\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with listening(trickle) as server, client(server.url, timeout_s=0.2) as ann:
        with pytest.raises(AnswerLostError, match="in time"):
            await ann.mode()


async def test_what_can_do_no_harm_twice_is_tried_again() -> None:
    answers = in_turn(b"", problem(503, "store_unavailable"), reply(502, b""), problem(429, "rate_limited"), MODE)
    async with listening(answers) as server, client(server.url, retry_s=30) as ann:
        assert await ann.mode() == "NORMAL"
        assert len(server.asked) == 5


async def test_a_call_is_tried_again_under_the_same_id() -> None:
    done = {"success": True, "tool_id": "x", "tool_name": "t", "status": "completed", "internal_status": "COMPLETED"}
    answers = in_turn(b"", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{", reply(200, json.dumps(done).encode()))
    async with listening(answers) as server, client(server.url, retry_s=30) as ann:
        assert (await ann.call("t")).status is Status.COMPLETED
    assert len({asked.body["tool_id"] for asked in server.asked}) == 1


@pytest.mark.parametrize("answer", [b"", problem(503, "store_unavailable"), reply(504, b"")])
@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("approvals.comment", ["a", "words"]), ("send", ["hello"]), ("undo", ["c"]),
        ("set_mode", ["LOCKDOWN"]), ("undo_run", ["r"]),
    ],
)  # fmt: skip
async def test_what_might_do_harm_twice_is_not_repeated(answer: bytes, method: str, given: list[str]) -> None:
    async with listening(in_turn(answer, MODE)) as server, client(server.url, retry_s=30) as ann:
        with pytest.raises(ServerError):
            await attrgetter(method)(ann)(*given)
        assert len(server.asked) == 1


async def test_a_decision_whose_answer_was_lost_is_sent_again_under_the_same_key() -> None:
    done = {"approval_id": "a", "status": "approved", "tool_id": "c", "tool_status": "approved"}
    busy = problem(409, "in_progress", "Still.", "Retry-After: 0")
    answers = in_turn(b"", busy, problem(503, "store_unavailable"), reply(200, json.dumps(done).encode()))
    async with listening(answers) as server, client(server.url, retry_s=30) as ann:
        assert (await ann.approvals.approve("a", "fine")).status == "approved"
        assert (await ann.approvals.approve("a", "fine")).status == "approved"
    keys = [asked.headers["idempotency-key"] for asked in server.asked]
    assert (len(keys), len(set(keys)), keys[0]) == (5, 2, keys[3])


async def test_a_conflict_of_any_kind_says_what_was_decided() -> None:
    decided = {"status": "approved", "decided_by": "ann", "decided_at": "2026-01-01T00:00:00+00:00", "reason": None}
    answers = in_turn(problem(409, "not_shown", "Open it.", decided=decided), problem(422, "key_reused", "Another."))
    async with listening(answers) as server, client(server.url, retry_s=30) as ann:
        with pytest.raises(errors.ConflictError, match="Open it") as caught:
            await ann.approvals.approve("a")
        assert caught.value.decided == decided
        with pytest.raises(errors.UsageError, match="Another"):
            await ann.approvals.approve("a")


async def test_what_was_never_sent_is_always_tried_again() -> None:
    port, served = free_port(), asyncio.Event()

    async def later() -> int:
        await asyncio.sleep(0.2)
        async with listening(always(COMMENT), port=port) as server:
            await served.wait()
            return len(server.asked)

    serving = asyncio.create_task(later())
    async with client(f"http://127.0.0.1:{port}", retry_s=30) as ann:
        with pytest.raises(errors.DecisionConflictError):
            await ann.approvals.approve("a1")
        served.set()
    assert await serving == 1


async def test_a_report_whose_answer_was_lost_is_known_to_have_arrived() -> None:
    late = problem(409, "stale_result", "Late.", tool_status="completed")
    async with listening(in_turn(b"", late)) as server, client(server.url, retry_s=30) as ann:
        assert (await ann.remote.result("c1", 1)).success
        assert len(server.asked) == 2
    async with listening(in_turn(b"", late)) as server, client(server.url, retry_s=30) as ann:
        with pytest.raises(errors.StaleFenceError):
            await ann.remote.result("c1", status="failed", error="broken")
    async with listening(always(late)) as server, client(server.url) as ann:
        with pytest.raises(errors.StaleFenceError):
            await ann.remote.result("c1", 1)
    async with listening(always(problem(400, "invalid_request"))) as server, client(server.url) as ann:
        with pytest.raises(UsageError):
            await ann.remote.result("c1", 1)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("ftp://127.0.0.1", "http or https"), ("127.0.0.1:8700", "http or https"), ("http://", "http or https"),
        ("http://ann:secret@127.0.0.1", "name or password"), ("http://127.0.0.1:99999", "not a URL"),
        ("http://127.0.0.1/?x=1", "`\\?` or `#`"), ("http://127.0.0.1\n.test", "http or https"),
        ("http://10.0.0.7:8700", "unencrypted"), ("http://localhost.example.com", "unencrypted"),
        ("http://127.0.0.1.example.com", "unencrypted"), ("http://0.0.0.0", "unencrypted"),
    ],
)  # fmt: skip
def test_an_address_that_will_not_do_is_refused(url: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        Client(url, token=TOKEN)
    assert TOKEN not in str(caught.value)


async def test_a_token_goes_to_this_machine_or_where_it_is_allowed() -> None:
    for url in ("http://localhost:1", "http://127.8.8.8", "http://[::1]:8700/", "https://gate.example.com"):
        async with Client(url, token=TOKEN) as made:
            assert TOKEN not in repr(made)
    async with Client("http://10.0.0.7", token=TOKEN, allow_plain_http=True), Client("http://10.0.0.7"):
        pass
    for token in ("", "a b", "a\nX-Evil: 1", "é"):
        with pytest.raises(UsageError, match="token"):
            Client("http://127.0.0.1", token=token)
    for project in ("", "..", "a\nb"):
        with pytest.raises(UsageError, match="id"):
            Client("http://127.0.0.1", project=project)


async def test_nothing_comes_from_the_environment_and_no_cookie_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login a password b\n", encoding="utf-8")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    answer = reply(200, b'{"success": true, "mode": "ALERT"}', "Set-Cookie: toolgate_session=evil; Path=/")
    with caplog.at_level(logging.DEBUG):
        async with listening(always(answer)) as server, client(server.url) as ann:
            assert (await ann.mode(), await ann.mode()) == ("ALERT", "ALERT")
            assert server.asked[1].headers["authorization"] == f"Bearer {TOKEN}"
            assert "cookie" not in server.asked[1].headers
    assert TOKEN not in caplog.text


async def test_ids_stay_inside_their_path() -> None:
    async with listening() as server, client(server.url) as ann:
        with pytest.raises(UsageError, match="Written down"):
            await ann.calls.get("..?x=1#y%2Fé")
        assert server.asked[0].path == "/my/projects/demo/tools/..?x=1#y%2Fé"
        assert server.asked[0].query == {}
        for id in ("..", "a/b", "", "i" * 129, "a\nb"):
            with pytest.raises(InvalidIdError, match="An id"):
                await ann.calls.get(id)
        assert len(server.asked) == 1
        with pytest.raises(UsageError, match="not a JSON value"):
            await ann.call("t", {"x": object()})
        with pytest.raises(UsageError, match="no JSON form"):
            await ann.approvals.respond("a1", object())


def certificate(folder: Path) -> tuple[Path, Path]:
    """A key and a certificate of this machine that nobody signed."""
    made = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, made.public_key(), x509.random_serial_number(), now, now + DAY)
    signed = builder.add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), False).sign(
        made, SHA256()
    )
    key, cert = folder / "key.pem", folder / "cert.pem"
    plain = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    key.write_bytes(made.private_bytes(*plain))
    cert.write_bytes(signed.public_bytes(Encoding.PEM))
    return key, cert


async def test_a_certificate_must_be_trusted(tmp_path: Path) -> None:
    key, cert = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await always(MODE)(Asked("GET", "", {}, {}), writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    async with client(f"https://127.0.0.1:{port}", retry_s=30) as ann:
        with pytest.raises(ServerUnreachableError, match="ca_file") as caught:
            await ann.mode()
        assert caught.value.is_lasting
    async with Client(f"https://127.0.0.1:{port}", token=TOKEN, ca_file=cert) as ann:
        assert await ann.mode() == "NORMAL"
    server.close()
    with pytest.raises(UsageError, match="certificates"):
        Client(f"https://127.0.0.1:{port}", ca_file=tmp_path / "none.pem")
    async with listening_to_bytes(b"HTTP/1.1 400 Bad Request\r\n\r\n") as address, client(address, retry_s=30) as ann:
        with pytest.raises(ServerUnreachableError, match="http://"):
            await ann.mode()


@asynccontextmanager
async def listening_to_bytes(answer: bytes) -> AsyncIterator[str]:
    """The https address of a server that knows no TLS."""

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
