"""What is said where an extra is not installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from toolgate.bootstrap import EXTRAS, require, uninstalled
from toolgate.errors import UsageError
from toolgate.interfaces.cli.worker import worker

ROOT = Path(__file__).parents[2]


def test_every_extra_that_is_named_can_be_installed() -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(EXTRAS.values()) <= set(known)


@pytest.mark.parametrize(
    ("name", "extra"), [("redis.asyncio", "redis"), ("asyncpg", "postgres"), ("uvicorn", "server")]
)
def test_a_library_of_an_extra_is_said_to_be_missing(name: str, extra: str) -> None:
    assert f"`pip install '.[{extra}]'` in a checkout" in str(uninstalled(ModuleNotFoundError(name=name)))


@pytest.mark.parametrize("name", ["mine", None])
def test_what_is_no_library_of_ours_is_not_explained(name: str | None) -> None:
    assert uninstalled(ModuleNotFoundError(name=name)) is None


@pytest.mark.parametrize(("missing", "said"), [("uvicorn", "toolgate: This needs uvicorn"), ("mine", "Traceback")])
def test_a_command_without_its_extra_says_so_in_one_line(tmp_path: Path, missing: str, said: str) -> None:
    (tmp_path / "uvicorn.py").write_text(f"raise ModuleNotFoundError('gone', name={missing!r})\n", encoding="utf-8")
    command = [sys.executable, "-m", "toolgate", "serve", "--database", f"sqlite:///{tmp_path}/a.db"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith(said)


@pytest.mark.parametrize(
    ("missing", "database"),
    [
        ("pydantic_settings", "sqlite:///a.db"),
        ("asyncpg", "postgresql://nobody@127.0.0.1:1/x"),
        ("pgqueuer", "postgresql://nobody@127.0.0.1:1/x"),
    ],
)
def test_a_worker_names_its_own_extra_whatever_of_it_is_missing(
    missing: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.bootstrap.find_spec", lambda name: None if name == missing else object())
    with pytest.raises(UsageError, match=rf"This needs {missing}, which comes with the extra `worker`"):
        worker(database=database, concurrency=1, lease_s=10.0, drain_s=1.0)


def test_what_is_installed_is_not_asked_for() -> None:
    require("worker", "orjson")


@pytest.mark.parametrize(
    ("missing", "said"), [("starlette", "ImportError: This needs starlette"), ("mine", "ModuleNotFoundError: gone")]
)
def test_embedding_the_server_without_its_extra_says_what_to_install(tmp_path: Path, missing: str, said: str) -> None:
    (tmp_path / "starlette.py").write_text(f"raise ModuleNotFoundError('gone', name={missing!r})\n", encoding="utf-8")
    command = [sys.executable, "-c", "import toolgate.server"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.stderr.splitlines()[-1].startswith(said)
