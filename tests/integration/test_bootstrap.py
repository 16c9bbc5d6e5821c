"""The development environment has two levels: the demo's is a part of everything, and going on only adds."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools import bootstrap, check_console

ROOT = Path(__file__).parents[2]
EDITABLE = "--editable"


def pins(name: str) -> dict[str, set[str]]:
    """Return the hashes of every pinned version in a lock."""
    text = (ROOT / name).read_text(encoding="utf-8")
    found = re.findall(r"^(\S+==\S+)[^\n]*((?:\n +--hash=\S+(?: \\)?)+)", text, re.MULTILINE)
    return {pin: set(re.findall(r"--hash=(\S+)", hashes)) for pin, hashes in found}


def test_the_demos_lock_is_a_part_of_the_other() -> None:
    demo, everything = pins("requirements-demo.lock"), pins("requirements.lock")
    assert demo
    assert demo.items() <= everything.items()
    assert len(demo) < len(everything) / 2


def test_the_demos_lock_has_the_server_and_the_build_backend() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["server"],
        *project["dependency-groups"]["build"],
    ]
    locked = {canonicalize_name(pin.partition("==")[0]) for pin in pins("requirements-demo.lock")}
    assert {canonicalize_name(Requirement(one).name) for one in needed} <= locked


class Steps:
    """Stands in for the commands: notes them, and makes an environment that looks like one."""

    def __init__(self) -> None:
        self.noted: list[str] = []

    def __call__(self, step: str, command: Sequence[str | Path]) -> None:
        words = [Path(word).name for word in command]
        self.noted.append(EDITABLE if EDITABLE in words else words[-1])
        if step == "venv":
            python = bootstrap.VENV_PYTHON
            python.parent.mkdir(parents=True)
            python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
            python.chmod(0o755)
            (python.parent / "pip").touch()

    def taken(self) -> list[str]:
        noted, self.noted = self.noted, []
        return noted


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    """A checkout of this test's own, and the steps that bootstrapping it took."""
    venv = tmp_path / ".venv"
    for name, value in {
        "ROOT": tmp_path,
        "LOCKS": {"demo": tmp_path / "demo.lock", "everything": tmp_path / "everything.lock"},
        "PYPROJECT": tmp_path / "pyproject.toml",
        "VENV": venv,
        "VENV_PYTHON": venv / "bin" / "python",
        "STAMP": venv / "bootstrap.stamp",
        "GUARD": tmp_path / ".venv.lock",
    }.items():
        monkeypatch.setattr(bootstrap, name, value)
    for name in ("demo.lock", "everything.lock", "pyproject.toml"):
        (tmp_path / name).write_text(f"{name} 1\n", encoding="utf-8")
    noted = Steps()
    monkeypatch.setattr(bootstrap, "run", noted)
    return noted


def test_the_demo_gets_its_own_packages_and_everything_is_added_to_them(steps: Steps) -> None:
    bootstrap.bootstrap("demo")
    assert steps.taken() == [".venv", "demo.lock", EDITABLE]
    bootstrap.bootstrap("demo")
    assert steps.taken() == []
    bootstrap.bootstrap("everything")
    assert steps.taken() == ["everything.lock"]
    bootstrap.bootstrap("everything")
    assert steps.taken() == []


def test_the_demo_is_content_with_everything(steps: Steps, tmp_path: Path) -> None:
    bootstrap.bootstrap("everything")
    assert steps.taken() == [".venv", "everything.lock", EDITABLE]
    bootstrap.bootstrap("demo")
    assert steps.taken() == []
    (tmp_path / "pyproject.toml").write_text("changed\n", encoding="utf-8")
    bootstrap.bootstrap("demo")
    assert steps.taken() == [EDITABLE]
    bootstrap.bootstrap("everything")
    assert steps.taken() == []


def test_another_lock_means_another_environment(steps: Steps, tmp_path: Path) -> None:
    bootstrap.bootstrap("everything")
    steps.taken()
    (tmp_path / "everything.lock").write_text("everything.lock 2\n", encoding="utf-8")
    bootstrap.bootstrap("everything")
    assert steps.taken() == [".venv", "everything.lock", EDITABLE]


def test_a_level_that_does_not_exist_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bootstrap.py", "nothing"])
    assert bootstrap.main() == 2
    assert "'nothing'" in capsys.readouterr().err


def test_pip_is_told_of_the_certificates_the_others_know(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in bootstrap.PIP_CERTIFICATES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", "/mine.crt")
    bootstrap.run("look", [sys.executable, "-c", "import os; assert os.environ['PIP_CERT'] == '/mine.crt'"])
    monkeypatch.setenv("PIP_CERT", "/pips.crt")
    bootstrap.run("look", [sys.executable, "-c", "import os; assert os.environ['PIP_CERT'] == '/pips.crt'"])


def test_npm_trusts_the_certificates_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system, own = tmp_path / "system.crt", tmp_path / "own.crt"
    for path in (system, own):
        path.touch()
    monkeypatch.delenv("NODE_EXTRA_CA_CERTS", raising=False)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setattr(check_console, "SYSTEM_CERTIFICATES", ("/nowhere.crt",))
    assert "NODE_EXTRA_CA_CERTS" not in check_console.environment()
    monkeypatch.setattr(check_console, "SYSTEM_CERTIFICATES", ("/nowhere.crt", str(system)))
    assert check_console.environment()["NODE_EXTRA_CA_CERTS"] == str(system)
    monkeypatch.setenv("SSL_CERT_FILE", str(own))
    assert check_console.environment()["NODE_EXTRA_CA_CERTS"] == str(own)
