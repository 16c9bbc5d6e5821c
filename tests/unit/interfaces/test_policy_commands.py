"""`toolgate policy` from the outside: what it prints and how it ends."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import toolgate
from toolgate.interfaces.cli.app import app

TEXT = """\
tools:
  pay:
    decision: allow
    arguments: [{field: amount, above: 100, then: ask}]
    approval: {timeout: 5m}
    rates: [{limit: 5, window: 1m}]
    examples: [{arguments: {amount: 5}, expect: allow}]
  sure: {confidence: {}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "toolgate.yaml"
    path.write_text(TEXT)
    return path


def run(*words: Any, code: int = 0, text: str | None = None) -> str:
    result = CliRunner().invoke(app, ["policy", *map(str, words)], input=text)
    assert result.exit_code == code, result.output
    return result.output


def test_check_of_a_good_and_a_bad_file(file: Path, tmp_path: Path) -> None:
    assert "2 tools, 0 categories, 0 commands" in run("check", file)
    assert json.loads(run("check", tmp_path, "--json"))["ok"] is True
    file.write_text("tools: {a: {decisions: ask}}")
    assert "did you mean `decision`?" in run("check", file, code=1)
    [problem] = json.loads(run("check", file, "--json", code=1))["problems"]
    assert (problem["line"], problem["column"]) == (1, 13)
    assert "cannot be read" in run("check", tmp_path / "nope.yaml", code=2)


def test_explain_one_call(file: Path) -> None:
    said = run("explain", file, "--call", '{"tool": "pay", "arguments": {"amount": 500}}')
    assert said.startswith("ASK  pay: the strictest word is ask")
    assert "within 300 s" in said
    assert "limit  5 in 60 s" in said
    assert "confidence 70" in run("explain", file, "--call", '{"tool": "sure"}')
    assert "DENY" in run("explain", file, "--call", '{"tool": "pay", "mode": "LOCKDOWN", "arguments": {"amount": "x"}}')
    assert json.loads(run("explain", file, "--json", "--call", '{"tool": "pay"}'))["verdict"] == "allow"


def test_built_in_tools_are_known_without_being_listed(file: Path, tmp_path: Path) -> None:
    file.write_text(
        "hosts: {allow: [example.com]}\ncategories: {read_only: {decision: allow}, network: {decision: allow}}"
    )
    calls = tmp_path / "calls.jsonl"
    table = [
        ("fetch_url", {"url": "https://example.com/"}, "allow"),
        ("fetch_url", {"url": "http://169.254.169.254/"}, "deny"),
        ("read_file", {"path": "notes.txt"}, "allow"),
        ("read_file", {"path": ".env"}, "deny"),
        ("system_metrics_snapshot", {}, "allow"),
    ]
    calls.write_text("\n".join(json.dumps({"tool": t, "arguments": a, "expect": e}) for t, a, e in table))
    said = run("explain", file, "--calls", calls, "--json", "--workspace", tmp_path).splitlines()
    assert [json.loads(line)["verdict"] for line in said] == [expect for _, _, expect in table]
    assert "5 passed, 0 failed" in run("test", file, "--calls", calls, "--workspace", tmp_path)


@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        ({"command": "pwd"}, "allow"),
        ({"command": "pwd", "args": []}, "allow"),
        ({"command": "pwd -x"}, "deny"),
        ({"command": "pwd", "args": "-x"}, "deny"),
        ({"command": 5}, "deny"),
    ],
)
def test_a_command_without_arguments_is_a_whole_command_line(file: Path, arguments: Any, verdict: str) -> None:
    file.write_text(
        "commands: {pwd: {executable: /bin/pwd}}\ntools: {execute_command: {decision: allow, commands: {allowed: all}}}"
    )
    call = json.dumps({"tool": "execute_command", "arguments": arguments})
    assert json.loads(run("explain", file, "--json", "--call", call))["verdict"] == verdict


async def test_simulate_knows_the_built_in_tools(file: Path, tmp_path: Path) -> None:
    file.write_text("categories: {read_only: {decision: allow}}")
    database = tmp_path / "calls.db"
    async with toolgate.open(f"sqlite:///{database}", policy=file, workspace=tmp_path, built_in_tools=True) as gate:
        assert (await gate.call("list_directory", {"path": "."})).success
    said = await asyncio.to_thread(run, "simulate", file, "--database", database, "--workspace", tmp_path)
    assert "1 calls replayed, 0 would be decided differently" in said


def test_explain_many_calls(file: Path, tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    calls.write_text('{"tool": "pay", "arguments": {"amount": 500}}\n\n{"tool": "other", "risk": "high"}\n')
    assert run("explain", file, "--calls", calls).splitlines()[0].startswith("ask    pay")
    lines = run("explain", file, "--calls", "-", "--json", text=calls.read_text()).splitlines()
    assert [json.loads(line)["verdict"] for line in lines] == ["ask", "ask"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--call", "{"), "is not JSON"),
        ((), "Give one call"),
        (("--call", "{}", "--calls", "-"), "Give one call"),
        (("--calls", "nowhere.jsonl"), "cannot be read"),
        (("--call", '{"tool": "a"}', "--tools", "no.such.module:TOOLS"), "There are no tools"),
    ],
)
def test_a_question_that_cannot_be_answered_ends_with_two(file: Path, words: tuple[str, ...], told: str) -> None:
    assert told in run("explain", file, *words, code=2)


def test_a_line_that_is_not_json_is_named(file: Path) -> None:
    assert "-:2 is not JSON" in run("explain", file, "--calls", "-", code=2, text='{"tool": "a"}\n{')


def test_a_table_of_calls_is_a_test(file: Path) -> None:
    good = '{"tool": "pay", "arguments": {"amount": 1}, "expect": "allow"}\n'
    bad = '{"tool": "pay", "arguments": {"amount": 1}, "expect": "deny"}\n'
    assert run("test", file) == "1 passed, 0 failed\n"
    assert run("test", file, "--calls", "-", text=good) == "2 passed, 0 failed\n"
    said = run("test", file, "--calls", "-", code=1, text=good + bad)
    assert "call 2: pay: expected deny, got allow" in said
    lines = run("test", file, "--calls", "-", "--json", code=1, text=good + bad).splitlines()
    assert [json.loads(line)["ok"] for line in lines] == [True, False]
    assert "must `expect`" in run("test", file, "--calls", "-", code=2, text='{"tool": "pay"}')


def test_diff_tells_and_ends_with_one(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    changed = TEXT.replace(", expect: allow", ", expect: deny")
    other.write_text(
        changed.replace("decision: allow", "decision: deny").replace(
            "{confidence: {}}", "{description: %s}" % ("x" * 99)
        )
    )
    assert "The policies say the same." in run("diff", file, file)
    said = run("diff", file, other, code=1)
    assert "tools.pay.decision: allow -> deny" in said
    assert "pay in NORMAL: allow -> deny (stricter)" in said
    assert "..." in said
    assert "(looser)" in run("diff", other, file, code=1)
    assert json.loads(run("diff", file, other, "--json", code=1))["differences"]


@pytest.fixture
def database(tmp_path: Path, file: Path) -> Path:
    @toolgate.tool
    def pay(amount: int) -> int:
        return amount

    path = tmp_path / "calls.db"
    with toolgate.open(f"sqlite:///{path}", tools=[pay], policy=file) as gate:
        gate.sync.set_mode("ALERT", by="ann")
        for amount in (1, 2, 3):
            gate.sync.call("pay", {"amount": amount})
        gate.sync.call("nope", {})
    return path


def test_simulate_replays_and_ends_with_one_where_something_changes(file: Path, database: Path, tmp_path: Path) -> None:
    assert "3 calls replayed, 0 would be decided differently" in run("simulate", file, "--database", database)
    new = tmp_path / "new.yaml"
    new.write_text(TEXT.replace("above: 100", "above: 1").replace("amount: 5", "amount: 1"))
    said = run("simulate", new, "--database", database, "--since", "1d", code=1)
    assert "2      pay   allow -> ask" in said
    assert "skipped 1: tool_not_found" in said
    found = json.loads(run("simulate", new, "--database", database, "--json", "--against", file, code=1))
    assert (found["calls"], found["changed"]) == (3, 2)
    assert "is not a duration" in run("simulate", new, "--database", database, "--since", "ever", code=2)
    assert "There is no database" in run("simulate", new, "--database", tmp_path / "no.db", code=2)


def test_tools_of_an_app_are_found(file: Path, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_tools.py").write_text(
        "import toolgate\n"
        "@toolgate.tool(requires_approval=True)\n"
        "def pay(amount: int) -> int:\n"
        "    return amount\n"
        "TOOLS = [pay]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    said = run("simulate", file, "--database", database, "--tools", "shop_tools", code=1)
    assert "requires_approval: the tool requires approval" in said
    assert "Without --tools" not in said
