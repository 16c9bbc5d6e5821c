"""Which files run later, and how a change to one is noticed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolgate.errors import SandboxError
from toolgate.guards import run_later
from toolgate.guards.run_later import changed, led_to, runs_later, stamps, told


@pytest.mark.parametrize(
    "path",
    [
        ".envrc",
        "deep/er/.envrc",
        ".github/workflows/ci.yml",
        "sub/.vscode/tasks.json",
        ".husky/pre-commit",
        ".claude",
        ".cursor/rules",
        ".gitlab-ci.yml",
        ".pre-commit-config.yaml",
        "tests/conftest.py",
        "CONFTEST.PY",
        ".venv/lib/python3.11/site-packages/x.pth",
        "package.json",
        "Makefile",
        "rules.mk",
        "setup.py",
        ".bashrc",
        "jest.config.js",
        ".eslintrc.cjs",
        "sub/.git/hooks/pre-commit",
        "sub/.git/config",
        "NODE_MODULES/conftest.py",
        ".pylintrc",
        ".coveragerc",
        ".mocharc.json",
        "rust-toolchain.toml",
        ".kiro/hooks/x",
    ],
)
def test_what_programs_look_for_by_themselves_runs_later(path: str) -> None:
    assert runs_later(path)


@pytest.mark.parametrize(
    "path",
    [
        "src/main.py",
        "README.md",
        ".git/index",
        ".git/hooks/pre-commit.sample",
        "hooks/x",
        "config",
        "node_modules/a/package.json",
        "data.json",
    ],
)
def test_other_files_do_not(path: str) -> None:
    assert not runs_later(path)


def test_created_changed_and_deleted_files_are_told(tmp_path: Path) -> None:
    for name in ("Makefile", "conftest.py", "setup.py", "plain.txt"):
        (tmp_path / name).write_text("x")
    (tmp_path / "node_modules").mkdir()
    before = stamps([str(tmp_path)])
    (tmp_path / "Makefile").write_text("y")
    (tmp_path / "setup.py").unlink()
    (tmp_path / "plain.txt").write_text("y")
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "ci.yml").write_text("x")
    (tmp_path / "node_modules" / "package.json").write_text("x")
    found = changed(before, stamps([str(tmp_path)]))
    assert found == tuple(str(tmp_path / name) for name in (".github/ci.yml", "Makefile", "setup.py"))


def test_a_forged_time_does_not_hide_a_change(tmp_path: Path) -> None:
    file = tmp_path / "Makefile"
    file.write_text("x")
    status = file.stat()
    before = stamps([str(tmp_path)])
    os.link(file, tmp_path / "other")
    (tmp_path / "other").write_text("y")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    (tmp_path / "other").unlink()
    assert changed(before, stamps([str(tmp_path)])) == (str(file),)


def test_what_a_link_of_such_a_name_leads_to_counts(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "job.yml").write_text("x")
    (tmp_path / "build").write_text("x")
    (tmp_path / ".github").symlink_to("real")
    (tmp_path / "Makefile").symlink_to("build")
    (tmp_path / ".envrc").symlink_to("nowhere")
    (tmp_path / "real" / "again").symlink_to("..")
    before = stamps([str(tmp_path)])
    (tmp_path / "real" / "job.yml").write_text("y")
    (tmp_path / "build").write_text("y")
    found = changed(before, stamps([str(tmp_path)]))
    assert found == (str(tmp_path / ".github" / "job.yml"), str(tmp_path / "Makefile"))


def test_every_link_on_the_way_to_what_runs_later_counts(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "rules").write_text("all:\n")
    (tmp_path / "now").symlink_to("lib/../lib")
    (tmp_path / "hop").symlink_to(tmp_path / "now" / "." / "rules")
    (tmp_path / "Makefile").symlink_to("hop")
    assert set(led_to(str(tmp_path))) == {str(tmp_path / name) for name in ("hop", "now", "lib/rules")}


def test_links_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    (tmp_path / "Makefile").symlink_to("again")
    (tmp_path / "again").symlink_to("Makefile")
    assert set(led_to(str(tmp_path))) == {str(tmp_path / "again")}
    assert set(stamps([str(tmp_path)])) == {str(tmp_path / "Makefile")}


def test_one_sentence_tells_it() -> None:
    assert told(["Makefile"]) == "It changed 1 file that runs later: Makefile."
    assert told([f"{n}.mk" for n in range(7)]).endswith(
        "7 files that run later: 0.mk, 1.mk, 2.mk, 3.mk, 4.mk and 2 more."
    )


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_later, "MAX_NAMES", 2)
    for number in range(3):
        (tmp_path / str(number)).write_text("x")
    with pytest.raises(SandboxError, match="smaller workspace"):
        stamps([str(tmp_path)])
