"""Look at the machine: `system_metrics_snapshot`, `check_process_health` and `read_system_logs`."""

from __future__ import annotations

import functools
import json
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable
from typing import Any

from toolgate.errors import ToolExecutionError
from toolgate.guards.grammar import TRUSTED_DIRECTORIES
from toolgate.kernel.context import Mode
from toolgate.kernel.signature import tool
from toolgate.kernel.tool import ToolDefinition

EVERY_MODE = tuple(mode.value for mode in Mode)
COMMAND_TIMEOUT_S = 10.0
SAMPLE_S = 0.1
MAX_LOG_BYTES = 1_000_000
SYSLOGS = ("/var/log/syslog", "/var/log/messages", "/var/log/system.log")
_ENVIRONMENT = {"PATH": ":".join(TRUSTED_DIRECTORIES), "LANG": "C.UTF-8"}


def tools() -> list[ToolDefinition]:
    """Return the tools that look at the machine."""
    define = functools.partial(_define, category="read_only", effects="read", allowed_modes=EVERY_MODE)
    return [
        define(
            system_metrics_snapshot,
            "Get CPU, memory, disk and GPU metrics.",
            {"type": "object", "properties": {}, "additionalProperties": False},
            risk_level="low",
        ),
        define(
            check_process_health,
            "Check whether specific processes are running.",
            {
                "type": "object",
                "properties": {
                    "names": {
                        "type": "array",
                        "items": {"type": "string", "minLength": 1},
                        "minItems": 1,
                        "maxItems": 100,
                        "description": "Names of programs, compared with the processes' own names.",
                    }
                },
                "required": ["names"],
                "additionalProperties": False,
            },
            risk_level="low",
        ),
        define(
            read_system_logs,
            "Fetch recent system logs.",
            {
                "type": "object",
                "properties": {
                    "lines": {"type": "integer", "minimum": 1, "maximum": 5000, "default": 100},
                    "unit": {
                        "type": "string",
                        "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.@:-]{0,127}$",
                        "description": "Only this service, where the log knows services.",
                    },
                },
                "additionalProperties": False,
            },
            risk_level="medium",
        ),
    ]


def _define(function: Callable[..., Any], description: str, schema: dict[str, Any], **options: Any) -> ToolDefinition:
    return tool(name=function.__name__, description=description, input_schema=schema, **options)(function)


def system_metrics_snapshot() -> dict[str, Any]:
    """Return what the machine is busy with. `gpu` is empty where no GPU can be asked."""
    import psutil

    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    return {
        "taken_at": time.time(),
        "cpu": {
            "percent": psutil.cpu_percent(interval=SAMPLE_S),
            "count": psutil.cpu_count(),
            "load_average": list(os.getloadavg()),
        },
        "memory": {"total": memory.total, "available": memory.available, "percent": memory.percent},
        "swap": {"total": swap.total, "used": swap.used, "percent": swap.percent},
        "disk": _disks(),
        "gpu": _gpus(),
        "uptime_seconds": time.time() - psutil.boot_time(),
    }


def _disks() -> list[dict[str, Any]]:
    import psutil

    found = {}
    for part in [*psutil.disk_partitions(all=False), None]:
        mount = "/" if part is None else part.mountpoint
        try:
            usage = psutil.disk_usage(mount)
        except OSError:
            continue  # a mount that cannot be asked says nothing about the others
        found[mount] = {"mount": mount, "total": usage.total, "free": usage.free, "percent": usage.percent}
    return list(found.values())


def _gpus() -> list[dict[str, Any]]:
    asked = "name,utilization.gpu,memory.total,memory.used,temperature.gpu"
    output = _output("nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader,nounits")
    found = []
    for line in (output or "").splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == 5:
            names = ("name", "percent", "memory_total_mb", "memory_used_mb", "temperature_c")
            found.append(dict(zip(names, fields, strict=True)))
    return found


def check_process_health(names: list[str]) -> dict[str, Any]:
    """Return for each name whether a process of that name runs, and those that do."""
    import psutil

    running: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for process in psutil.process_iter(["pid", "name", "status", "memory_info", "create_time"]):
        told = process.info
        if told["name"] in running:
            memory = told["memory_info"]
            running[told["name"]].append(
                {
                    "pid": told["pid"],
                    "status": told["status"],
                    "memory_bytes": None if memory is None else memory.rss,
                    "started_at": told["create_time"],
                }
            )
    processes = {
        name: {"running": any(one["status"] != psutil.STATUS_ZOMBIE for one in found), "processes": found}
        for name, found in running.items()
    }
    return {"healthy": all(one["running"] for one in processes.values()), "processes": processes}


def read_system_logs(lines: int = 100, unit: str | None = None) -> dict[str, Any]:
    """Return the last lines of the system's log: the journal, the unified log of macOS, or a syslog file."""
    for source, read in (("journald", _journal), ("unified log", _unified_log), ("syslog", _syslog)):
        found = read(lines, unit)
        if found is not None:
            kept = found[-lines:]
            return {"source": source, "lines": kept, "truncated": len(found) > len(kept)}
    raise ToolExecutionError("No system log can be read here: no journal, no unified log, no readable syslog file.")


def _journal(lines: int, unit: str | None) -> list[str] | None:
    only = [f"--unit={unit}"] if unit else []
    output = _output("journalctl", "--no-pager", "--output=json", f"--lines={lines}", *only)
    if not output:
        return None
    return [_entry(line) for line in output.splitlines() if line.startswith("{")] or None


def _entry(line: str) -> str:
    told = json.loads(line)
    at = int(told.get("__REALTIME_TIMESTAMP", 0)) / 1e6
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    return f"{stamp} {told.get('SYSLOG_IDENTIFIER') or told.get('_COMM') or '?'}: {told.get('MESSAGE')}"


def _unified_log(lines: int, unit: str | None) -> list[str] | None:
    if platform.system() != "Darwin":
        return None
    only = ["--predicate", f'process == "{unit}"'] if unit else []
    output = _output("log", "show", "--style", "syslog", "--last", "10m", *only)
    return output.splitlines() if output else None


def _syslog(lines: int, unit: str | None) -> list[str] | None:
    for path in SYSLOGS:
        try:
            with open(path, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_LOG_BYTES))
                found = file.read(MAX_LOG_BYTES).decode(errors="replace").splitlines()
        except OSError:
            continue  # not this one
        return [line for line in found if unit is None or unit in line]
    return None


def _output(program: str, *arguments: str) -> str | None:
    """Return what a trusted program says, if it is there and answers."""
    executable = shutil.which(program, path=_ENVIRONMENT["PATH"])
    if executable is None:
        return None
    try:
        done = subprocess.run(
            [executable, *arguments],
            capture_output=True,
            env=_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout[-MAX_LOG_BYTES:].decode(errors="replace") if done.returncode == 0 else None
