from __future__ import annotations

import ast
import asyncio
import inspect
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.docs.pages import NOT_RUN, PRINTS, Block, blocks, name_of, pages
from tests.postgres import needs_postgres

WITH_PYTHON = [page for page in pages() if any(block.language == "python" for block in blocks(page))]
MARKED = [
    pytest.param(page, marks=needs_postgres) if "DATABASE_URL" in page.read_text(encoding="utf-8") else page
    for page in WITH_PYTHON
]


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


@pytest.mark.parametrize("page", MARKED, ids=name_of)
def test_every_python_block_runs(
    page: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    if 'environ["DATABASE_URL"]' in page.read_text(encoding="utf-8"):
        monkeypatch.setenv("DATABASE_URL", request.getfixturevalue("postgres_url"))
    module = ModuleType("docs_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)
    with asyncio.Runner() as runner:
        for block in blocks(page):
            if block.mark == PRINTS:
                assert capsys.readouterr().out.strip() == block.code.strip(), f"{name_of(page)}:{block.line}"
            elif block.language == "python" and block.mark != NOT_RUN:
                capsys.readouterr()
                run_block(block, name_of(page), module, runner)


OF_PROGRAMS = set("run-tools-on-your-machine try-a-policy-change undo-a-run watch-activity".split())
"""How-tos about the commands and the console alone: there is nothing to write in Python."""


def test_the_readme_and_every_how_to_of_the_library_have_code_that_runs() -> None:
    need = [page for page in pages() if page.name == "README.md" or page.parent.name in ("how-to", "tutorials")]
    without = {page.stem for page in need if page not in WITH_PYTHON}
    assert without == OF_PROGRAMS


def test_blocks_name_their_language() -> None:
    unnamed = [f"{name_of(page)}:{block.line}" for page in pages() for block in blocks(page) if not block.language]
    assert unnamed == []
