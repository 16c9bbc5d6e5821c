"""Looking at the machine."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

import toolgate
from toolgate.catalog import system
from toolgate.errors import ToolExecutionError


async def test_a_snapshot_tells_cpu_memory_disk_and_gpu(gate: toolgate.Gate) -> None:
    data = (await gate.call("system_metrics_snapshot")).unwrap()
    assert data["cpu"]["count"] >= 1
    assert 0 < data["memory"]["available"] <= data["memory"]["total"]
    assert any(disk["mount"] == "/" for disk in data["disk"])
    assert isinstance(data["gpu"], list)


async def test_processes_are_found_by_name(gate: toolgate.Gate) -> None:
    own = psutil.Process().name()
    data = (await gate.call("check_process_health", {"names": [own, "no-such-program"]})).unwrap()
    assert data["processes"][own]["running"]
    assert not data["processes"]["no-such-program"]["running"]
    assert not data["healthy"]


def program(directory: Path, name: str, text: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in place of the system's own ones, for programs this machine lacks."""
    monkeypatch.setitem(system._ENVIRONMENT, "PATH", str(tmp_path))
    monkeypatch.setattr(system, "SYSLOGS", (str(tmp_path / "missing"), str(tmp_path / "syslog")))
    return tmp_path


def test_a_gpu_is_told_where_one_can_be_asked(programs: Path) -> None:
    program(programs, "nvidia-smi", "echo 'Card, 12, 8000, 100, 40'")
    assert system._gpus()[0] == {
        "name": "Card",
        "percent": "12",
        "memory_total_mb": "8000",
        "memory_used_mb": "100",
        "temperature_c": "40",
    }


def test_the_journal_is_read(programs: Path) -> None:
    entry = '{"__REALTIME_TIMESTAMP":"1000000","SYSLOG_IDENTIFIER":"kernel","MESSAGE":"hello"}'
    program(programs, "journalctl", f"echo '{entry}'; echo \"$@\" > {programs}/asked")
    found = system.read_system_logs(lines=5, unit="ssh.service")
    assert found["lines"] == ["1970-01-01T00:00:01Z kernel: hello"]
    assert "--unit=ssh.service" in (programs / "asked").read_text()


def test_a_syslog_file_is_read(programs: Path) -> None:
    program(programs, "journalctl", "exit 1")
    (programs / "syslog").write_text("\n".join(f"line {number} cron" for number in range(10)) + "\nother\n")
    found = system.read_system_logs(lines=3, unit="cron")
    assert (found["source"], found["lines"], found["truncated"]) == (
        "syslog",
        ["line 7 cron", "line 8 cron", "line 9 cron"],
        True,
    )


def test_the_log_of_macos_is_read(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    program(programs, "log", "echo one; echo two")
    assert system.read_system_logs(lines=1, unit="x") == {"source": "unified log", "lines": ["two"], "truncated": True}


def test_where_there_is_no_log_it_says_so(programs: Path) -> None:
    with pytest.raises(ToolExecutionError, match="No system log"):
        system.read_system_logs()


async def test_a_unit_that_is_no_name_is_refused(gate: toolgate.Gate) -> None:
    assert (await gate.call("read_system_logs", {"unit": "--file=/etc/shadow"})).error_code == "invalid_arguments"
