"""Every Python block runs: whole files on the pages a reader follows, excerpts on the others."""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.docs.pages import PRINTS, Block, blocks, extras_of, followed, name_of, pages
from tests.docs.reader import Reader, run_here
from tests.postgres import needs_postgres

from toolgate.hitl import clear_hitl_gate
from toolgate.tools import clear_approval_service, clear_tool_registry, clear_undo_store

FOLLOWED = followed()
WITH_PYTHON = [page for page in pages() if any(block.language == "python" for block in blocks(page))]
NEED_A_SERVER = ("agent-that-asks", "use-the-client-library")
"""Pages whose files talk to a server their commands start: followed by `make test-real` alone."""
NEED_A_FRAMEWORK: tuple[str, ...] = (
    "use-with-langchain",
    "use-with-openai-agents",
    "use-with-claude-agent-sdk",
    "use-with-fastmcp",
    "use-with-google-adk",
)
"""Pages about frameworks that are not installed here: run by `make test-real`, each in an environment of its own."""
ELSEWHERE = (*NEED_A_SERVER, *NEED_A_FRAMEWORK)
INNER = tuple(f"toolgate.{part}" for part in ("kernel", "ports", "adapters", "pipeline"))


def marked(chosen: list[Path]) -> list[object]:
    """Pages as parameters; those that read DATABASE_URL need PostgreSQL."""
    return [
        pytest.param(page, marks=needs_postgres) if 'environ["DATABASE_URL"]' in page.read_text("utf-8") else page
        for page in chosen
    ]


def run_alone(path: Path) -> str:
    """Run a file, and forget what it set for its process, as the end of a process does."""
    try:
        return run_here(path)
    finally:
        clear_tool_registry()
        clear_approval_service()
        clear_undo_store()
        if (gate := clear_hitl_gate()) is not None:
            gate.close()


@pytest.fixture
def database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a page that reads DATABASE_URL tells its reader to set."""
    page: Path = request.node.callspec.params["page"]
    if 'environ["DATABASE_URL"]' in page.read_text("utf-8"):
        monkeypatch.setenv("DATABASE_URL", request.getfixturevalue("postgres_url"))


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    "page", marked([page for page in FOLLOWED if page in WITH_PYTHON and page.stem not in ELSEWHERE]), ids=name_of
)
def test_every_file_of_a_page_runs_as_it_is_printed(
    page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with Reader(page, folder, dict(os.environ), run_alone) as reader:
        reader.follow(types=False)


@pytest.mark.parametrize("page", FOLLOWED, ids=name_of)
def test_every_python_block_of_a_page_is_a_whole_file(page: Path) -> None:
    for block in blocks(page):
        if block.language == "python":
            place = f"{name_of(page)}:{block.line}"
            assert block.is_run, f"{place}: Python is always run"
            assert block.file is not None, f"{place}: the first line must be the file's name, as in `# app.py`"
            compile(block.code, place, "exec", dont_inherit=True)


@pytest.mark.parametrize("page", [page for page in FOLLOWED if page in WITH_PYTHON], ids=name_of)
def test_a_page_says_once_what_to_install(page: Path) -> None:
    assert len(set(extras_of(page))) == 1 or page.name == "README.md"


@pytest.mark.parametrize("page", FOLLOWED, ids=name_of)
def test_a_page_imports_public_names_only(page: Path) -> None:
    modules = [
        name
        for block in blocks(page)
        if block.language == "python"
        for node in ast.walk(ast.parse(block.code))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [item.name for item in node.names])
    ]
    assert [name for name in modules if name.startswith(INNER)] == []


def compile_block(block: Block, name: str) -> object:
    """Return the block's code with the page's own line numbers; a top-level `await` makes it a coroutine."""
    source = "\n" * (block.line - 1) + block.code
    return compile(source, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def run_block(block: Block, name: str, module: ModuleType, runner: asyncio.Runner) -> None:
    """Run a block that awaits on the page's loop, and any other one outside of a loop."""
    code = compile_block(block, name)
    going_on = eval(code, module.__dict__)  # type: ignore[arg-type]  # a code object, typed as object by compile
    if inspect.iscoroutine(going_on):
        runner.run(going_on)


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("page", marked([page for page in WITH_PYTHON if page not in FOLLOWED]), ids=name_of)
def test_every_excerpt_in_reference_and_explanation_runs(
    page: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    module = ModuleType("docs_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)
    with asyncio.Runner() as runner:
        for block in blocks(page):
            if block.mark == PRINTS:
                assert capsys.readouterr().out.strip() == block.code.strip(), f"{name_of(page)}:{block.line}"
            elif block.language == "python" and block.is_run:
                capsys.readouterr()
                run_block(block, name_of(page), module, runner)


OF_PROGRAMS = set("run-tools-on-your-machine try-a-policy-change undo-a-run watch-activity".split())
"""How-tos about the commands and the console alone: there is nothing to write in Python."""


def test_the_readme_and_every_how_to_of_the_library_have_code_that_runs() -> None:
    without = {page.stem for page in FOLLOWED if page not in WITH_PYTHON}
    assert without == OF_PROGRAMS


def test_pages_left_to_the_real_run_start_a_server() -> None:
    starting = [page.stem for page in FOLLOWED if page.stem in NEED_A_SERVER and "toolgate serve" in page.read_text()]
    assert sorted(starting) == sorted(NEED_A_SERVER)


def test_blocks_name_their_language() -> None:
    unnamed = [f"{name_of(page)}:{block.line}" for page in pages() for block in blocks(page) if not block.language]
    assert unnamed == []
