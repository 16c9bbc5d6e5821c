"""What holds for every test: generated-example profiles, no silent skips in CI, nothing left running."""

from __future__ import annotations

import asyncio
import inspect
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test, settings
from tests.postgres import KEY, Cluster
from tests.redis_server import RedisServer
from tests.soak import Figures, kept, times

from toolgate.adapters.sealing import load
from toolgate.adapters.sqlite.file import prepare

# Child processes are not measured: starting the tracer costs each of them as much as importing the library does. What
# decides is reached in the tests' own processes to the last branch, which tools/check_coverage.py holds them to.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)

LINGER_S = 30.0
"""How long threads and tasks of a test may take to end after it."""
IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")

# No deadlines: a slow machine is not a defect. The examples are the same each time, since what they reach is
# counted line by line; soak looks for new ones.
settings.register_profile("default", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("soak", deadline=None, print_blob=True, max_examples=times(5000))
PROFILE = os.environ.get("HYPOTHESIS_PROFILE") or "default"
settings.load_profile(PROFILE)

skipped: set[str] = set()
figures = Figures()


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Under the soak profile every generated test is a long campaign."""
    for item in items:
        if PROFILE == "soak" and is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.soak)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    figures.hear(report)
    if report.skipped and not hasattr(report, "wasxfail"):
        skipped.add(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.skipped:
        skipped.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if IN_CI and skipped and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in figures.lines():
        terminalreporter.line(line)
    if IN_CI and skipped:
        terminalreporter.section("skipped tests fail CI", red=True)
        for nodeid in sorted(skipped):
            terminalreporter.line(nodeid)


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """What a campaign counts: kills, calls, effects. The run ends with the sums."""
    tally: Counter[str] = Counter()
    yield tally
    request.node.user_properties.extend(kept(tally))


def toolgate_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("toolgate")}


@pytest.fixture(autouse=True)
def no_thread_left_behind() -> Iterator[None]:
    """Fail a test that leaves one of our threads running: a gate it opened and did not close."""
    before = toolgate_threads()
    yield
    until = time.monotonic() + LINGER_S  # for all of them together: one that stays must not hold up the run
    for thread in toolgate_threads() - before:
        thread.join(max(0.0, until - time.monotonic()))
    left = toolgate_threads() - before
    assert not left, f"threads left running: {sorted(thread.name for thread in left)}"


@pytest.fixture
async def task_check() -> AsyncIterator[None]:
    yield
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    if tasks:
        await asyncio.wait(tasks, timeout=LINGER_S)
    left = [task.get_name() for task in tasks if not task.done()]
    assert not left, f"asyncio tasks left running: {sorted(left)}"


@pytest.fixture(autouse=True)
def no_task_left_behind(request: pytest.FixtureRequest) -> None:
    """Fail an async test that leaves a task running on its loop."""
    if inspect.iscoroutinefunction(request.function):
        request.getfixturevalue("task_check")


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The user's state folder, for tests and the processes they start: never the real one."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("state")
        patch.setenv("XDG_STATE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with its key and nothing in it; copying it is much quicker than making one."""
    path = tmp_path_factory.mktemp("template") / "toolgate.db"
    prepare(path)
    load(Path(f"{path}.key"), create=True)
    return path


@pytest.fixture
def database(tmp_path: Path, empty_database: Path) -> Path:
    """The path of a database of this test's own, with its key beside it."""
    path = tmp_path / "toolgate.db"
    for suffix in ("", ".key"):
        shutil.copy(f"{empty_database}{suffix}", f"{path}{suffix}")
    return path


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis server for every test that does not harm it."""
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis server of this test's own, to be killed and started again."""
    folder = tmp_path / "redis"
    folder.mkdir()
    server = RedisServer(folder)
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[Cluster]:
    """A PostgreSQL server of this test process, made when the first test asks for it."""
    cluster = Cluster()
    yield cluster
    cluster.close()


@pytest.fixture
def postgres_url(postgres_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a database with nothing in it, and in the environment the key that seals it."""
    monkeypatch.setenv("TOOLGATE_KEY", KEY)
    return postgres_cluster.emptied()
