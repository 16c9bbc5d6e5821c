"""Everything that is served is described, and what is described is what is served."""

from __future__ import annotations

import asyncio
import json
import re
from functools import cache
from typing import Any
from urllib.parse import quote

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.routing import Route, WebSocketRoute
from tests.unit.interfaces.server.house import House, P, execute

from toolgate.interfaces.server.openapi import document
from toolgate.interfaces.server.operations import Operation
from toolgate.interfaces.server.routes import OPERATIONS
from toolgate.testing.patience import PATIENCE_S

DOCUMENT = document(OPERATIONS)


def is_page(route: Route) -> bool:
    """Whether this is a page for people, which is no operation of the API."""
    return str(route.endpoint.__module__).startswith("toolgate.interfaces.console")


async def test_every_route_is_in_the_document(house: House) -> None:
    served = {
        (route.path, method.lower())
        for route in house.app.routes
        if isinstance(route, Route) and route.path != "/openapi.json" and not is_page(route)
        for method in route.methods or ()
        if method != "HEAD"
    } | {(route.path, "get") for route in house.app.routes if isinstance(route, WebSocketRoute)}
    described = {(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert served == described
    assert len(described) == len(OPERATIONS) + 1
    told = (await house.client().get("/openapi.json")).json()
    assert told["openapi"] == "3.1.0"
    assert told["paths"].keys() == DOCUMENT["paths"].keys()


def test_every_reference_leads_somewhere_and_every_schema_is_one() -> None:
    names = set(re.findall(r"#/components/schemas/(\w+)", str(DOCUMENT)))
    assert names <= set(DOCUMENT["components"]["schemas"])
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema_rs.meta.validate(schema)


def test_operations_have_names_of_their_own() -> None:
    names = [one["operationId"] for methods in DOCUMENT["paths"].values() for one in methods.values()]
    assert len(names) == len(set(names))
    assert all(
        one["summary"] and one["responses"] for methods in DOCUMENT["paths"].values() for one in methods.values()
    )


@cache  # each is made of the whole document
def validator(method: str, path: str, status: int) -> jsonschema_rs.Draft202012Validator | None:
    described = DOCUMENT["paths"][path][method.lower()]["responses"]
    assert str(status) in described, f"{method} {path} answers {status}, which nobody was told"
    content = next(iter(described[str(status)]["content"].values()))["schema"]
    if content == {"type": "string"}:
        return None
    return jsonschema_rs.Draft202012Validator({**content, "components": DOCUMENT["components"]})


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
WORDS = st.sampled_from(
    "approved rejected completed failed NORMAL LOCKDOWN add pay far gone ask decide 0 1 -1 true null x".split()
)


@st.composite
def bodies(draw: st.DrawFn, operation: Operation) -> bytes:
    """A body that looks as if it belonged here, more or less; or anything."""
    if draw(st.integers(0, 5)) == 0:
        return draw(st.binary(max_size=50))
    fields = list(operation.body.model_fields) if operation.body is not None else []
    names = st.sampled_from(fields) if fields else st.text(max_size=5)
    body = draw(st.dictionaries(names | st.text(max_size=5), JSON | WORDS, max_size=6))
    return json.dumps(body).encode("utf-8", "replace")


SPOKEN = [one for one in OPERATIONS if one.media != "text/event-stream"]  # a stream has no end to wait for


@pytest.mark.parametrize("operation", SPOKEN, ids=lambda one: f"{one.method} {one.path}")
async def test_whatever_is_sent_the_answer_is_one_of_those_described(house: House, operation: Operation) -> None:
    loop = asyncio.get_running_loop()
    ids = [
        (await house.client("bot").post(f"{P}/tools/execute", json=execute("pay", {"amount": 1}, wait=False))).json()
        for _ in range(2)
    ]
    clients = [house.client(who) for who in ("ann", "root", "runner:1")]
    known = st.sampled_from([*(one["tool_id"] for one in ids), *(one["approval_id"] for one in ids), "r1"])

    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        st.sampled_from(clients),
        bodies(operation),
        st.dictionaries(st.sampled_from("limit after status tool_id run_id live".split()), WORDS, max_size=3),
        known | st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1, max_size=20),
    )
    def send(client: Any, body: bytes, query: dict[str, str], id: str) -> None:
        path = operation.path.replace("{project_id}", "demo")
        path = re.sub(r"\{\w+\}", quote(id, safe="").replace(".", "%2E"), path)
        content = body if operation.body is not None else None
        asking = client.request(operation.method, path, params=query, content=content)
        answer = asyncio.run_coroutine_threadsafe(asking, loop).result(PATIENCE_S)
        assert answer.status_code < 500 or answer.status_code == 501, answer.text
        status = answer.status_code
        check = validator(operation.method, operation.path, status) if status != 405 else None
        if check is not None:
            check.validate(answer.json())

    await asyncio.to_thread(send)
