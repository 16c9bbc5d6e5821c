"""Who may do what: tokens, sessions, tickets, JWTs, hosts, origins and limits."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pydantic import ValidationError
from tests.unit.interfaces.server.house import House, Listening, P, execute, open_house

from toolgate.interfaces.server.settings import ServerSettings
from toolgate.interfaces.server.tokens import digest_of
from toolgate.ports.directory import Ability


@pytest.mark.parametrize("header", [None, "Bearer nonsense", "Bearer tg_" + "x" * 43, "Basic YTpi", "Bearer", "tg_x"])
async def test_who_shows_nothing_valid_is_told_nothing(house: House, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    answer = await house.client(**headers).get(f"{P}/tools/available")
    assert (answer.status_code, answer.json()["code"]) == (401, "not_signed_in")
    assert "WWW-Authenticate" in answer.headers


async def test_a_token_is_kept_only_as_its_digest(house: House) -> None:
    kept = await house.directory.tokens(account="ann")
    assert [token.digest for token in kept] == [digest_of(house.tokens["ann"])]
    assert house.tokens["ann"] not in repr(kept)


async def test_a_revoked_or_expired_token_ends_at_once(house: House) -> None:
    ann = house.client("ann")
    assert (await ann.get("/session")).json()["account"] == "ann"
    token = (await house.directory.tokens(account="ann"))[0]
    await house.directory.revoke(token.id, now=datetime.now(UTC))
    assert (await ann.get("/session")).status_code == 401
    await house.add("old", "person", lifetime_s=-1)
    assert (await house.client("old").get("/session")).status_code == 401


async def test_a_token_is_no_more_than_its_limits(house: House) -> None:
    await house.add(
        "ann2", "person", ("demo", "second"), projects=frozenset({"demo"}), abilities=frozenset({Ability.READ})
    )
    narrow = house.client("ann2")
    assert (await narrow.get(f"{P}/tools/available")).status_code == 200
    assert (await narrow.post(f"{P}/tools/execute", json=execute("add"))).status_code == 403
    assert (await narrow.get(P.replace("demo", "second") + "/mode")).status_code == 404


async def test_a_viewer_only_looks(house: House) -> None:
    await house.add("guest", "person", {"demo": frozenset({"viewer"})})
    guest = house.client("guest")
    assert (await guest.get(f"{P}/approvals")).status_code == 200
    assert (await guest.post(f"{P}/tools/execute", json=execute("add"))).status_code == 403


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "tools/available"), ("POST", "tools/execute"), ("GET", "tools/x"), ("POST", "tools/x/result"),
        ("GET", "approvals"), ("POST", "approvals/x/approve"), ("GET", "events"), ("GET", "chat/stream"),
        ("POST", "chat/messages"), ("GET", "mode"), ("GET", "grants"), ("POST", "tickets"), ("GET", "runs/x"),
    ],
)  # fmt: skip
async def test_a_foreign_project_looks_like_one_that_is_not_there(house: House, method: str, path: str) -> None:
    eve = house.client("eve")
    foreign = await eve.request(method, f"{P}/{path}")
    unknown = await eve.request(method, f"/my/projects/nowhere/{path}")
    assert foreign.status_code == unknown.status_code == 404
    assert foreign.json() == unknown.json()


async def test_only_an_admin_sees_the_system_project(house: House) -> None:
    await house.add("all", "person", ("*",))
    assert (await house.client("all").get("/my/projects/_system/events")).status_code == 404
    assert (await house.client("root").get("/my/projects/_system/events")).status_code == 200
    assert (await house.client("all").get(f"{P}/mode")).status_code == 200


async def test_a_browser_signs_in_and_out(house: House) -> None:
    made = await house.client("ann").post("/session")
    assert made.status_code == 201
    cookie = made.headers["set-cookie"]
    assert all(word in cookie for word in ("HttpOnly", "SameSite=strict", "toolgate_session="))
    text = cookie.split("=", 1)[1].split(";")[0]
    key = {"X-Toolgate-Key": made.json()["key"]}
    browser = house.client(Cookie=f"toolgate_session={text}")
    assert (await browser.get("/session", headers=key)).json() == {
        "success": True, "account": "ann", "kind": "person", "key": None, "expires_in": None,
        "projects": ["demo"],
    }  # fmt: skip
    asked = await browser.post(f"{P}/tools/execute", json=execute("add", {"left": 1, "right": 1}), headers=key)
    assert asked.status_code == 200
    assert (await browser.post("/session", headers=key)).status_code == 403
    assert (await browser.delete("/session", headers=key)).status_code == 200
    assert (await browser.get("/session", headers=key)).status_code == 401
    assert (await house.client("ann").delete("/session")).status_code == 403


async def test_a_session_ends_with_the_token_it_was_made_with(house: House) -> None:
    made = await house.client("ann").post("/session")
    text = made.headers["set-cookie"].split("=", 1)[1].split(";")[0]
    token = (await house.directory.tokens(account="ann"))[0]
    await house.directory.revoke(token.id, now=datetime.now(UTC))
    assert (await house.client(Cookie=f"toolgate_session={text}").get("/session")).status_code == 401


async def test_signing_out_ends_a_session_s_streams(house: House) -> None:
    made = await house.client("ann").post("/session")
    text = made.headers["set-cookie"].split("=", 1)[1].split(";")[0]
    browser = house.client(Cookie=f"toolgate_session={text}")
    async with Listening(browser, f"{P}/chat/stream", {}) as open_stream:
        await open_stream.ready()
        await browser.delete("/session", headers={"X-Toolgate-Key": made.json()["key"]})
        await open_stream.until(lambda: open_stream.has_ended)


@pytest.mark.parametrize("cookie", ["toolgate_session=tg_nobody", "other=1", "bad cookie", "toolgate_session"])
async def test_a_cookie_of_nobody_signs_nobody_in(house: House, cookie: str) -> None:
    assert (await house.client(Cookie=cookie).get("/session")).status_code == 401


async def test_a_header_with_a_control_character_is_no_request(house: House) -> None:
    assert (await house.client(Cookie="bad\x01cookie").get("/session")).status_code == 400


async def test_a_ticket_opens_one_stream_once(house: House) -> None:
    made = await house.client("ann").post(f"{P}/tickets")
    assert made.status_code == 201
    ticket = made.json()["ticket"]
    stranger = house.client()
    async with house.listen("ann", f"{P}/chat/stream"):
        pass
    async with stranger.stream("GET", f"{P}/events", params={"ticket": ticket}) as first:
        assert first.status_code == 200
    second = await stranger.get(f"{P}/events", params={"ticket": ticket})
    assert second.status_code == 401
    other = (await house.client("ann").post(f"{P}/tickets")).json()["ticket"]
    assert (await stranger.get(f"{P}/tools/available", params={"ticket": other})).status_code == 401
    bearer = await stranger.get(f"{P}/events", params={"ticket": house.tokens["ann"]})
    assert bearer.status_code == 401
    assert (await house.client("ann").get("/session")).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "localhost:99"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost:80", "Origin": "http://localhost:80"}, 200),
        ({"Host": "localhost:80", "Origin": "http://localhost:81"}, 403),
        ({"Host": "localhost:80", "Origin": "ftp://localhost:80"}, 403),
    ],
)
async def test_foreign_hosts_and_pages_are_refused(house: House, headers: dict[str, str], status: int) -> None:
    answer = await house.client("ann").get(f"{P}/mode", headers=headers)
    assert answer.status_code == status
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_probes_answer_to_any_host(house: House) -> None:
    for path in ("/healthz", "/readyz"):
        assert (await house.client().get(path, headers={"Host": "10.0.0.7"})).status_code == 200


async def test_a_page_of_an_allowed_origin_may_use_the_server() -> None:
    async with open_house(allowed_origins="https://console.example", allowed_hosts="gate.example") as house:
        origin = {"Origin": "https://console.example", "Host": "gate.example"}
        asked = await house.client("ann").get(f"{P}/mode", headers=origin)
        assert asked.headers["access-control-allow-origin"] == "https://console.example"
        preflight = await house.client().options(f"{P}/mode", headers=origin | {"Access-Control-Request-Method": "PUT"})
        assert preflight.status_code == 200
    async with open_house(public_origin="https://gate.example", allowed_hosts=("gate.example",)) as house:
        behind = {"Origin": "https://gate.example", "Host": "gate.example"}
        assert (await house.client("ann").get(f"{P}/mode", headers=behind)).status_code == 200
        made = await house.client("ann").post("/session", headers=behind)
        assert "Secure" in made.headers["set-cookie"]


async def test_an_account_that_asks_too_often_is_told_to_wait() -> None:
    async with open_house(requests_per_second=0.001, request_burst=3) as house:
        answers = [await house.client("ann").get(f"{P}/mode") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert int(answers[-1].headers["Retry-After"]) >= 0
        assert (await house.client("bob").get(f"{P}/mode")).status_code == 200


async def test_guessing_tokens_is_slowed_down() -> None:
    async with open_house(failures_per_second=0.001, failure_burst=3) as house:
        stranger = house.client(Authorization="Bearer tg_guess")
        answers = [(await stranger.get("/session")).status_code for _ in range(5)]
        assert answers == [401, 401, 401, 429, 429]
        assert (await house.client("ann").get("/session")).status_code == 200


async def test_a_body_that_is_too_large_is_refused(house: House) -> None:
    async with open_house(max_body_bytes=2000) as small:
        ann = small.client("ann")
        for content in (b"x" * 3000, _chunks()):
            assert (await ann.post(f"{P}/tools/execute", content=content)).status_code == 413


async def _chunks() -> Any:
    for _ in range(30):
        yield b"x" * 100


KEY = ed25519.Ed25519PrivateKey.generate()
PUBLIC = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def a_jwt(**claims: Any) -> str:
    now = datetime.now(UTC)
    known = {"sub": "ann", "iss": "https://id.example", "aud": "toolgate", "exp": now + timedelta(minutes=5)}
    return jwt.encode({name: value for name, value in (known | claims).items() if value is not None}, KEY, "EdDSA")


async def test_a_jwt_says_who_somebody_is() -> None:
    settings: dict[str, Any] = {"jwt_issuer": "https://id.example", "jwt_audience": "toolgate", "jwt_key": PUBLIC}
    async with open_house(**settings) as house:
        good = house.client(Authorization=f"Bearer {a_jwt()}")
        assert (await good.get("/session")).json()["account"] == "ann"
        assert (await good.get(f"{P}/tools/available")).status_code == 200
        assert (await good.post("/session")).status_code == 403
        assert (await good.post(f"{P}/tickets")).status_code == 201
        long_ago = datetime.now(UTC) - timedelta(hours=1)
        unsigned = jwt.encode({"sub": "ann", "iss": "https://id.example", "aud": "toolgate"}, "", "none")
        bad = [
            a_jwt(sub="nobody"),
            a_jwt(exp=long_ago),
            a_jwt(aud="other"),
            a_jwt(iss="other"),
            a_jwt(exp=None),
            unsigned,
        ]
        for text in bad:
            assert (await house.client(Authorization=f"Bearer {text}").get("/session")).status_code == 401


@pytest.mark.parametrize(
    "wrong",
    [
        {"jwt_issuer": "x"},
        {"jwt_algorithms": "HS256"},
        {"allowed_hosts": "a b"},
        {"port": 70_000},
        {"requests_per_second": 0},
    ],
)
def test_settings_that_do_not_fit_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ServerSettings(**wrong)


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLGATE_ALLOWED_HOSTS", "a.example, b.example")
    monkeypatch.setenv("TOOLGATE_PORT", "9000")
    settings = ServerSettings()
    assert (settings.allowed_hosts, settings.port) == (("a.example", "b.example"), 9000)
    assert "a.example" in settings.hosts
    assert ServerSettings(host="0.0.0.0").hosts.isdisjoint({"0.0.0.0"})


async def test_a_body_that_never_comes_is_given_up(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgate.interfaces.server.operations.BODY_S", 0.1)
    host, port = house.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    token = house.tokens["ann"]
    writer.write(
        f"POST {P}/tools/execute HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        "Content-Length: 10\r\n\r\nabc".encode()
    )
    answer = await reader.read(4000)
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"body_timeout" in answer
    writer.close()


async def test_a_stream_of_a_ticket_made_with_a_jwt_goes_on() -> None:
    settings: dict[str, Any] = {"jwt_issuer": "https://id.example", "jwt_audience": "toolgate", "jwt_key": PUBLIC}
    async with open_house(**settings) as house:
        made = await house.client(Authorization=f"Bearer {a_jwt()}").post(f"{P}/tickets")
        path = f"{P}/chat/stream?ticket={made.json()['ticket']}"
        async with Listening(house.client(), path, {}) as kept, house.listen("bob") as revoked:
            await kept.ready()
            await revoked.ready()
            token = (await house.directory.tokens(account="bob"))[0]
            await house.directory.revoke(token.id, now=datetime.now(UTC))
            await house.services.hub._check_callers(house.services.hub.connections)
            await revoked.until(lambda: revoked.has_ended)
            assert not kept.has_ended
            await house.add("ann", "person", ("elsewhere",))
            await house.services.hub._check_callers(house.services.hub.connections)
            await kept.until(lambda: kept.has_ended)
