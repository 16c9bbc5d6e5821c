"""What the scripted agent understands, and what it does with it, through the same loop as any model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.docs.pages import quoted, rows, sections
from tests.unit.agent.office import Office, open_office

import toolgate
from toolgate.agent.requests import FORMS, TEMPORARY, Request, understand
from toolgate.agent.scripted import ScriptedModel
from toolgate.catalog.client import client_tools


@pytest.mark.parametrize(
    ("line", "kind", "parts"),
    [
        ("read README.md", "read", ("README.md",)),
        ("Please show me the file `a b.txt`", "read", ("a b.txt",)),
        ("list", "list", ("",)),
        ("ls src/app", "list", ("src/app",)),
        ("run the tests", "tests", ()),
        ("Run all my tests!", "tests", ()),
        ("run make lint", "run", ("make lint",)),
        ("replace foo with bar in x.py", "replace", ("foo", "bar", "x.py")),
        ('replace "a with b" with "" in "my file.py"', "replace", ("a with b", "", "my file.py")),
        ("replace a by b with c in in in x.py", "replace", ("a", "b with c in in", "x.py")),
        ("Replace  'it''s'  BY  `its own`  IN  'a in b'", "replace", ("it''s", "its own", "a in b")),
        ("replace 'tis with that in x.py", "replace", ("'tis", "that", "x.py")),
        ("clean up build", "clean", ("build",)),
        ("cleanup the folder tmp", "clean", ("tmp",)),
        ('/tool pay {"amount": 5}', "tool", ("pay", '{"amount": 5}')),
        ("/tool now", "tool", ("now", "")),
        ("help", "help", ()),
        ("What can you do?", "help", ()),
    ],
)
def test_requests_are_understood(line: str, kind: Any, parts: tuple[str, ...]) -> None:
    assert understand(line) == Request(kind=kind, parts=parts)


@pytest.mark.parametrize("line", [
    "write me a poem", "show me how to cook", "replace it", "tool pay", "", "replace a with b", "replace a in x.py",
    "replace a with in x.py", "replace a with b in 'x", "replace in x.py", "replace 'a' in x.py",
])  # fmt: skip
def test_other_lines_are_not(line: str) -> None:
    assert understand(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "replace x by" + " " * 50_000 + "z",
        "replace" + " " * 50_000 + "x",
        "replace x" + " by y" * 10_000,
        "replace x" + " by y in" * 10_000 + " '",
        "replace 'x" + "' by '" * 10_000 + " in y z",
        "run" + " " * 50_000 + "`a`b`",
    ],
    ids=["spaces", "nothing", "by", "by-in", "quotes", "run"],
)
def test_a_long_line_is_not_understood_soon(line: str) -> None:
    assert understand(line) is None


def test_every_request_is_in_the_reference() -> None:
    table = rows(sections("docs/reference/agent.md", 2)["The scripted agent"])
    assert [quoted(row[0])[0] for row in table] == [form.usage for form in FORMS]
    assert set(TEMPORARY) <= set(quoted(next(row[1] for row in table if "clean" in row[0])))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "README.md").write_text("# Hello\nworld\n")
    (tmp_path / "work").mkdir()
    for name in ("a.tmp", "b.bak", "keep.txt"):
        (tmp_path / "work" / name).write_text("x")
    return tmp_path


def at(folder: Path) -> Any:
    return open_office(ScriptedModel(), [], gate={"built_in_tools": True, "workspace": folder})


async def yes(office: Office, decision: str = "approve") -> None:
    await office.ears.next("chat.run", status="waiting")
    await office.approve(decision, reason="because")


async def test_a_file_is_read(folder: Path) -> None:
    async with at(folder) as office:
        assert "# Hello\nworld" in (await office.answer("read README.md"))["answer"]
        assert "could not read" in (await office.answer("read nothing.md"))["answer"]
        assert "- work/" in (await office.answer("list"))["answer"]
        assert "could not list" in (await office.answer("list nowhere"))["answer"]


async def test_temporary_files_are_deleted_after_a_yes_and_kept_after_a_no(folder: Path) -> None:
    async with at(folder) as office:
        await office.send("clean up work")
        await office.ears.next("chat.run", status="waiting")
        first, second = await office.gate.pending()
        await office.gate.decide(first.id, "approve", by="bob", reason="ok")
        await office.gate.decide(second.id, "deny", by="bob", reason="I need it")
        told = await office.ears.next("chat.message", final=True)
        assert "deleted 1 of 2" in told["answer"]
        assert "I need it" in told["answer"]
        assert len(list((folder / "work").iterdir())) == 2
        assert "nothing temporary" in (await office.answer("clean up ."))["answer"]
        assert "could not list" in (await office.answer("clean up nowhere"))["answer"]


async def test_a_text_is_replaced(folder: Path) -> None:
    async with at(folder) as office:
        await office.send("replace Hello with Bye in README.md")
        await yes(office)
        assert "replaced `Hello` with `Bye`" in (await office.ears.next("chat.message", final=True))["answer"]
        assert (folder / "README.md").read_text() == "# Bye\nworld\n"
        await office.send("replace Bye with X in README.md")
        await yes(office, "deny")
        assert "did not change" in (await office.ears.next("chat.message", final=True))["answer"]


async def test_several_lines_are_several_requests(folder: Path) -> None:
    async with at(folder) as office:
        told = await office.answer("read README.md\n\nlist work\nsing a song")
        assert len(told["tool_results"]) == 2
        assert "# Hello" in told["answer"]
        assert "keep.txt" in told["answer"]
        assert "do not understand `sing a song`" in told["answer"]


async def test_what_is_not_understood_is_answered_with_what_is() -> None:
    async with open_office(ScriptedModel(), []) as office:
        for line in ("sing", "help", "   "):
            assert "replace X with Y in FILE" in (await office.answer(line))["answer"]
        assert "may not use it here" in (await office.answer("read x\nrun the tests"))["answer"]
        assert "may not use it here" in (await office.answer("clean up x\nlist x"))["answer"]
        assert "take `echo 'x` apart" in (await office.answer("run echo 'x"))["answer"]


async def test_any_tool_can_be_called() -> None:
    @toolgate.tool(effects="read")
    async def double(number: int) -> int:
        return 2 * number

    async with open_office(ScriptedModel(), [double]) as office:
        assert "`double` returned:\n\n```\n8" in (await office.answer('/tool double {"number": 4}'))["answer"]
        assert "did not succeed" in (await office.answer("/tool double {"))["answer"]
        assert "did not succeed" in (await office.answer("/tool nothing"))["answer"]
        assert "mind\n- `read" not in (await office.answer("help\n/tool double {}"))["answer"]


class Clients:
    """Answers the tools a client runs, as one of document 004 may."""

    def __init__(self) -> None:
        self.files = {"notes.txt": "old old"}
        self.ran: list[list[str]] = []

    def tools(self) -> list[toolgate.ToolDefinition]:
        return [
            toolgate.ToolDefinition(
                tool.name, dict(tool.input_schema), getattr(self, tool.name), effects=tool.effects, risk_level="low"
            )
            for tool in client_tools()
        ]

    async def read_file(self, given: toolgate.ToolInput) -> toolgate.ToolOutput:
        path = given.payload["path"]
        return (
            toolgate.ToolOutput.ok(self.files[path]) if path in self.files else toolgate.ToolOutput.fail("no such file")
        )

    async def write_file(self, given: toolgate.ToolInput) -> toolgate.ToolOutput:
        self.files[given.payload["path"]] = given.payload["content"]
        return toolgate.ToolOutput.ok()

    async def list_directory(self, _given: toolgate.ToolInput) -> toolgate.ToolOutput:
        return toolgate.ToolOutput.ok(["a.tmp", "sub/", *self.files])

    async def execute_command(self, given: toolgate.ToolInput) -> toolgate.ToolOutput:
        self.ran.append([given.payload["command"], *given.payload["args"]])
        code = 1 if "stuck" in str(given.payload) else 0
        return toolgate.ToolOutput.ok({"stdout": "2 passed", "stderr": "it is stuck", "exit_code": code})


async def test_the_tools_of_a_client_are_enough() -> None:
    clients = Clients()
    async with open_office(ScriptedModel(), clients.tools()) as office:
        assert "2 times" in (await office.answer("replace old with new in notes.txt"))["answer"]
        assert clients.files == {"notes.txt": "new new"}
        assert "changed nothing" in (await office.answer("replace old with new in notes.txt"))["answer"]
        assert "could not read" in (await office.answer("replace a with b in other.txt"))["answer"]
        assert "exit code 0" in (await office.answer("run the tests"))["answer"]
        assert "deleted 1 of 1" in (await office.answer("clean up work"))["answer"]
        assert clients.ran == [["pytest", "-q"], ["rm", "--", "work/a.tmp"]]
        assert "- sub/" in (await office.answer("list"))["answer"]
        told = (await office.answer("clean up stuck"))["answer"]
        assert "deleted 0 of 1" in told
        assert "it is stuck" in told


async def test_long_results_are_cut() -> None:
    clients = Clients()
    clients.files["long"] = "x" * 5000
    async with open_office(ScriptedModel(), clients.tools()) as office:
        assert "1,000 more characters" in (await office.answer("read long"))["answer"]
