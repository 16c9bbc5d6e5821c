"""A database is named by its URL or by the path of a SQLite file, wherever one is named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import toolgate
from toolgate import bootstrap
from toolgate.errors import UsageError
from toolgate.tools import ApprovalService, UndoStore


@toolgate.tool
async def note(text: str) -> str:
    return text


async def test_a_path_and_a_url_name_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with toolgate.open("a.db", tools=[note]) as gate:
        await gate.call("note", {"text": "hello"}, call_id="c1")
    for name in ("sqlite:///a.db", f"sqlite:///{tmp_path}/a.db", tmp_path / "a.db", f"{tmp_path}/a.db"):
        async with toolgate.open(name) as gate:
            assert (await gate.get("c1")).data == "hello"


async def test_everything_that_opens_a_database_takes_a_path(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    service = ApprovalService.open(path)
    await service.gate.aclose()
    store = UndoStore.open(str(path))
    await store.store("c1", {"old": 1})
    await store.close()
    for opened in (bootstrap.directory(path), bootstrap.threads(path)):
        await opened.close()
    assert [one.name for one in tmp_path.iterdir() if one.suffix == ".db"] == ["a.db"]


@pytest.mark.parametrize("name", ["", " ", "memory", "sqlite", "sqlite:a.db", "postgresql:/host/db"])
def test_what_looks_like_neither_is_refused_before_a_file_is_made(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="names no database"):
        toolgate.open(name)
    assert not Path(name or "nothing").is_file()


def test_a_servers_address_is_no_database_and_a_password_is_not_repeated() -> None:
    with pytest.raises(UsageError, match=re.escape("a server's address, not a database")):
        toolgate.open("http://127.0.0.1:8642")
    with pytest.raises(UsageError) as refused:
        toolgate.open("postgresql:user:s3cret@host/db")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("secret", [b"correct horse", None, 271828182845, ["correct horse"]])
def test_a_secret_that_is_no_text_is_refused_before_anything_opens_and_not_quoted(
    tmp_path: Path, secret: object
) -> None:
    with pytest.raises(UsageError, match=r"number 2 is of type \w+; nothing opened") as refused:
        toolgate.open(f"sqlite:///{tmp_path}/calls.db", secrets=["a secret", secret])  # type: ignore[list-item]  # wrong on purpose
    assert "correct horse" not in str(refused.value)
    assert "2718" not in str(refused.value)
    assert not [*tmp_path.iterdir()]


MODULE = """
import toolgate
from toolgate.hitl import hitl_tool

@toolgate.tool
def pay(amount: int) -> int:
    return amount

@hitl_tool()
async def ask() -> None: ...

def plain() -> None: ...
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"tools_of_{tmp_path.name}"
    lists = "LIST = [pay, ask]\nBY_NAME = {'pay': pay}\nMIXED = [pay, plain]\n"
    (tmp_path / f"{name}.py").write_text(f"{MODULE}\n{lists}")
    (tmp_path / f"{name}_listed.py").write_text(f"{MODULE}\nTOOLS = (pay,)\n")
    (tmp_path / f"{name}_broken.py").write_text("def (")
    (tmp_path / f"{name}_raising.py").write_text("raise ValueError('not set up')")
    (tmp_path / f"{name}_empty.py").write_text("TOOL = 5")
    monkeypatch.syspath_prepend(tmp_path)
    return name


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ("", {"pay", "ask"}),
        (":LIST", {"pay", "ask"}),
        (":BY_NAME", {"pay"}),
        (":pay", {"pay"}),
        (":ask", {"ask"}),
        ("_listed", {"pay"}),
        ("_listed:ask", {"ask"}),
    ],
)
def test_tools_are_named_by_a_module_with_or_without_a_name(module: str, where: str, names: set[str]) -> None:
    assert {*bootstrap.tools_at(module + where)} == names


@pytest.mark.parametrize(
    ("where", "why"),
    [
        (":MIXED", "`plain` is not a tool: decorate the function with `@tool`"),
        (":plain", "`plain` is not a tool"),
        (":toolgate", "`toolgate` is not a tool"),
        (":nothing", "has no `nothing`"),
        ("_empty", "has no `TOOLS`, and no tool either"),
        ("_empty:TOOL", "`int` is not a tool"),
        ("_broken", "cannot be imported (SyntaxError: "),
        ("_raising:LIST", "cannot be imported (ValueError: not set up)"),
        ("_none", "cannot be imported (ModuleNotFoundError: "),
    ],
)
def test_where_there_are_no_tools_one_sentence_says_why(module: str, where: str, why: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"There are no tools at '{module}{where}': ")) as caught:
        bootstrap.tools_at(module + where)
    assert why in str(caught.value)


@pytest.mark.parametrize("where", ["", ":", ":TOOLS", ".x", "a b"])
def test_what_names_no_module_is_said_so(where: str) -> None:
    with pytest.raises(UsageError, match="cannot be imported"):
        bootstrap.tools_at(where)


PLANTED = "import pathlib\npathlib.Path(__file__).with_suffix('.ran').touch()\n"
SERVES = """
import sys
from toolgate import bootstrap
tools = bootstrap.tools_at("my_tools")
assert [*tools] == ["look"], tools
import my_tools
assert my_tools.helper.HERE == 1
assert not any(getattr(finder, "__module__", "") == "toolgate.bootstrap" for finder in sys.meta_path)
for late in ("wave", "httptools", "redis", "planted_later", "tomllib", "json"):
    try:
        __import__(late)
    except ImportError:
        pass
"""


def test_a_module_planted_in_the_workspace_is_not_imported(tmp_path: Path) -> None:
    for name in ("json", "wave", "graphlib", "httptools", "redis", "planted_later", "orjson", "tomllib"):
        (tmp_path / f"{name}.py").write_text(PLANTED)
    (tmp_path / "helper.py").write_text("HERE = 1\n")
    (tmp_path / "my_tools.py").write_text(
        "import graphlib, json, wave, orjson\nimport helper\nimport toolgate\n\n\n"
        "@toolgate.tool\nasync def look() -> str:\n    return 'x'\n"
    )
    program = [sys.executable, "-P", "-c", SERVES]
    subprocess.run(program, cwd=tmp_path, check=True, timeout=60, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    assert [*tmp_path.glob("*.ran")] == []


def test_the_command_as_a_module_does_not_look_for_modules_where_it_is_run(tmp_path: Path) -> None:
    for name in ("yaml", "planted_later", "redis"):
        (tmp_path / f"{name}.py").write_text(PLANTED)
    (tmp_path / "my_tools.py").write_text(
        "import os, sys\nimport toolgate\n\nassert os.getcwd() not in sys.path and '' not in sys.path\n\n"
        "@toolgate.tool\nasync def look() -> str:\n    return 'x'\n"
    )
    (tmp_path / "toolgate.yaml").write_text("default: ask\n")
    words = ["policy", "explain", "toolgate.yaml", "--tools", "my_tools", "--call", '{"tool": "look"}']
    program = [sys.executable, "-m", "toolgate", *words]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(program, cwd=tmp_path, timeout=60, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert [*tmp_path.glob("*.ran")] == []


def test_tools_in_packages_of_the_workspace_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"package_of_{tmp_path.name}".replace("-", "_")
    (tmp_path / name).mkdir()
    (tmp_path / name / "tools.py").write_text(f"from {name}.deeper import HERE\n{MODULE}\n")
    (tmp_path / name / "deeper.py").write_text("HERE = 1\n")
    (tmp_path / name / "later.py").write_text("HERE = 2\n")
    monkeypatch.chdir(tmp_path)
    before = [*sys.path], [*sys.meta_path]
    assert {*bootstrap.tools_at(f"{name}.tools")} == {"pay", "ask"}
    assert ([*sys.path], [*sys.meta_path]) == before
    assert import_module(f"{name}.later").HERE == 2
