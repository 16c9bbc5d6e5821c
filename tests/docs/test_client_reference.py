"""The build fails where the page about the client lacks a method or a parameter, or has one that is gone."""

from __future__ import annotations

import inspect
import re

import pytest
from tests.docs.pages import missing_words, quoted, read, rows, sections

from toolgate import client
from toolgate.client import BrowserSession, Client, EventStream, StreamEvent, SyncStream
from toolgate.interfaces.client.approvals import Approvals
from toolgate.interfaces.client.calls import Calls
from toolgate.interfaces.client.delegations import Delegations
from toolgate.interfaces.client.grants import Grants
from toolgate.interfaces.client.remote import Remote

PAGE = "docs/reference/client.md"
PARTS = {
    "": Client,
    "calls.": Calls,
    "approvals.": Approvals,
    "grants.": Grants,
    "delegations.": Delegations,
    "remote.": Remote,
}
METHODS = {
    f"{part}{name}": getattr(face, name)
    for part, face in PARTS.items()
    for name in dir(face)
    if not name.startswith("_") and inspect.isfunction(getattr(face, name))
}


def told() -> dict[str, str]:
    """The signature on the page, by method."""
    shown = [quoted(row[0])[0] for row in rows(read(PAGE)) if "(" in row[0]]
    return {signature.partition("(")[0]: signature for signature in shown}


def test_every_method_is_on_the_page_and_no_other_is() -> None:
    assert set(told()) == set(METHODS) - {"aclose"}


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"aclose"}))
def test_every_parameter_is_in_the_signature(name: str) -> None:
    wanted = [word for word in inspect.signature(METHODS[name]).parameters if word != "self"]
    assert re.findall(r"(\w+)(?==|,|\))", re.sub(r"=('[^']*'|[^,)]+)", "=", told()[name]).replace("=", "=,")) == wanted


def test_every_option_and_name_is_explained() -> None:
    options = [quoted(row[0])[0] for row in rows(sections(PAGE, 2)["Client"])]
    assert options == list(inspect.signature(Client).parameters)
    fields = [*BrowserSession.__dataclass_fields__, *StreamEvent.__dataclass_fields__, "last_id", "is_connected"]
    names = [*client.__all__, *fields, "aclose", "close", "url", "project"]
    assert missing_words(names, read(PAGE)) == []
    assert {"aclose"} < set(dir(EventStream))
    assert {"close"} < set(dir(SyncStream))
