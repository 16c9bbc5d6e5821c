"""The walks on the architecture page are the ones a call takes."""

from __future__ import annotations

from pathlib import Path

from tests.docs.pages import quoted, rows, sections
from tests.postgres import needs_postgres
from tests.walks.__main__ import table
from tests.walks.plays import Walks, at_a_worker, decided_elsewhere, in_memory, over_http
from tests.walks.trace import Walk

PAGE = "docs/explanation/architecture.md"
SHOWN = ("gate/", "pipeline/", "interfaces/", "adapters/runners/")


def told(title: str) -> dict[str, list[str]]:
    """What the page says of a walk: the files, in order, by who goes through them."""
    return {row[0]: quoted(row[1]) for row in rows(sections(PAGE, 3)[title])}


def check(walks: Walks, title: str, *folders: str) -> None:
    """Hold the walks against what the page says of their files, judgements and commits."""
    page = told(title)
    assert list(page) == list(walks)
    for who, walk in walks.items():
        assert " ".join(walk.below(*folders)) == " ".join(page[who]), who
    check_numbers(walks, title)


def check_numbers(walks: Walks, title: str) -> None:
    together = sum(walks.values(), Walk())
    assert [title, str(together.judgements), str(together.commits)] in rows(sections(PAGE, 2)["Four walks"])


async def test_a_call_in_memory_goes_through_these_files() -> None:
    walks, title = await in_memory(), "A call in memory that needs nobody"
    [walk] = walks.values()
    assert list(walk.files) == [quoted(row[0])[0] for row in rows(sections(PAGE, 3)[title])]
    check_numbers(walks, title)


async def test_a_call_that_another_process_decides_goes_through_these(database: Path) -> None:
    walks = await decided_elsewhere(database)
    check(walks, "A call on SQLite that another process decides", "gate/", "pipeline/")


async def test_a_call_over_http_goes_through_these_of_caller_server_and_runner(tmp_path: Path) -> None:
    check(await over_http(tmp_path), "A call over HTTP that a runner executes", *SHOWN)


@needs_postgres
async def test_a_call_at_a_worker_goes_through_these_of_both_processes(postgres_url: str, tmp_path: Path) -> None:
    check(await at_a_worker(postgres_url, tmp_path), "A call on PostgreSQL that a worker runs", *SHOWN)


async def test_the_numbers_are_printed_for_everybody_in_a_walk(database: Path) -> None:
    lines = table("On SQLite", await decided_elsewhere(database))
    assert lines[1].split()[2:] == ["files", "changes", "of", "file", "judgements", "commits", "store", "reads"]
    assert [line.split()[-3:-1] for line in lines[2:]] == [["1", "1"], ["0", "1"], ["1", "2"], ["2", "4"]]
