"""What the explanations claim and code can be asked about: numbers, files, events, layers, headers, places."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, missing_words, name_of, prose, quoted, read, sections

import toolgate
from toolgate.adapters.memory import store as memory
from toolgate.adapters.postgres import owners as postgres_owners
from toolgate.interfaces.console.pages import POLICY
from toolgate.kernel.assessment import LEVEL_TIMEOUT_S
from toolgate.kernel.event import EVENTS
from toolgate.kernel.terms import ApprovalLevel
from toolgate.kernel.tool import Placement, Thresholds
from toolgate.pipeline import flight, plan
from toolgate.pipeline.remote import leasing, orders

RETAINED: int = inspect.signature(memory.MemoryStore).parameters["retain"].default
PAGES = sorted((ROOT / "docs" / "explanation").glob("*.md"))
SOURCES = ROOT / "src" / "toolgate"
GUARANTEES = "docs/explanation/guarantees.md"
METHODS = {"tool.ainvoke"}  # of another library
WORDS = {1: "a second", 2: "two seconds", 3: "three times", 8: "eight deep", 9: "nine seconds"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_file_a_page_names_is_there(page: Path) -> None:
    named = [code for code in quoted(prose(page)) if re.fullmatch(r"[\w/]+\.(py|js)", code)]
    assert [path for path in named if not _is_there(path)] == []


def _is_there(path: str) -> bool:
    folders = (ROOT, ROOT / "tests" / "faults", SOURCES)
    return any((folder / path).exists() for folder in folders) or any(SOURCES.rglob(path))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_event_a_page_names_is_one(page: Path) -> None:
    families = {name.partition(".")[0] for name in EVENTS}
    named = [code for code in quoted(prose(page)) if re.fullmatch(r"[a-z]+\.[a-z_]+", code)]
    events = [code for code in named if code.partition(".")[0] in families and not code.endswith((".py", ".js"))]
    assert [name for name in events if name not in EVENTS and name not in METHODS] == []


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        (GUARANTEES, f"beyond {RETAINED:,} finished calls"),
        (GUARANTEES, f"beyond {RETAINED * memory.EVENTS_PER_CALL:,}\n  events of a project"),
        (GUARANTEES, f"it ends within {WORDS[int(flight.STOP_GRACE_S)]}"),
        ("docs/explanation/decisions.md", f"at least `auto` ({Thresholds().auto})"),
        ("docs/explanation/decisions.md", f"at least `quick` ({Thresholds().quick})"),
        ("docs/explanation/decisions.md", f"or no score | {LEVEL_TIMEOUT_S[ApprovalLevel.FULL]:.0f} s |"),
        ("docs/explanation/decisions.md", f"(60) | {LEVEL_TIMEOUT_S[ApprovalLevel.QUICK]:.0f} s |"),
        ("docs/explanation/open-questions.md", f"Calls nest at most {WORDS[flight.MAX_DEPTH]}"),
        ("docs/explanation/workers.md", f"is sent again after {plan.OFFER_AGAIN_S:.0f} s"),
        ("docs/explanation/workers.md", f"with a new fence, up to {WORDS[leasing.MOST_ATTEMPTS]}"),
        ("docs/explanation/workers.md", f"two signs of life ({WORDS[int(postgres_owners.BEAT_S)]})"),
        ("docs/how-to/run-on-postgresql.md", f"after {WORDS[int(postgres_owners.LEASE_S)]} the others take over"),
    ],
)
def test_numbers_are_those_of_the_code(page: str, sentence: str) -> None:
    assert sentence in read(page)


def test_a_lease_is_renewed_as_often_as_the_drawing_says() -> None:
    assert orders.RENEWALS == 3
    assert "loop every third of the lease" in read("docs/explanation/workers.md")


def test_the_import_law_on_the_page_is_the_one_that_is_checked() -> None:
    [layers] = [one["layers"] for one in PROJECT["tool"]["importlinter"]["contracts"] if one["id"] == "layers"]
    law = [[name.strip(" ()") for name in line.split("|")] for line in layers]
    there = [[name for name in line if _is_a_part(name)] for line in law]
    told = re.search(r"## Import law.*?```text\n(.*?)\n```", read("docs/explanation/architecture.md"), re.DOTALL)
    assert told is not None
    assert [line.split(" | ") for line in told[1].splitlines()] == there


def _is_a_part(name: str) -> bool:
    return (SOURCES / name).is_dir() or (SOURCES / f"{name}.py").exists()


def test_every_directive_of_the_content_security_policy_is_explained() -> None:
    table = read("docs/explanation/console.md")
    assert [directive for directive in POLICY.split("; ") if f"`{directive.strip()}`" not in table] == []


def test_every_extra_and_what_it_brings_is_on_the_stack_page() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    brought = {re.split(r"[\[>=<]", line)[0] for lines in extras.values() for line in lines}
    told = read("docs/explanation/stack.md")
    assert missing_words({*extras, *brought} - {"toolgate"}, told) == []


def test_where_handlers_run_is_told_with_what_holds_there() -> None:
    with toolgate.open("memory://") as gate:
        assert gate.host.runner(Placement.SANDBOX) is not None
    told = " ".join(sections(GUARANTEES, 2).values()).lower()
    assert [place for place in Placement if {"client": "runner"}.get(place, place) not in told] == []
