"""The built-in tools in document 003's words, and its one function for running a command by itself."""

from __future__ import annotations

import atexit
import os
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolgate.adapters.runners.sandbox import Sandbox
from toolgate.catalog import built_in_tools
from toolgate.errors import UsageError
from toolgate.governance.config import GovernanceConfig
from toolgate.governance.registry import ToolRegistry
from toolgate.guards.edges import Edges
from toolgate.guards.files import Workspace
from toolgate.kernel.misuse import explained
from toolgate.ports.confinement import Confined

SEARCHED = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
TIMED_OUT = {"stdout": "", "stderr": "Command timed out", "exit_code": -1}


class BuiltinRegistry(ToolRegistry):
    """The built-in tools. What they may touch is the workspace, until a layer's governance file says it."""

    def __init__(self, workspace: str | Path | None = None) -> None:
        super().__init__()
        self._workspace = None if workspace is None else Path(workspace)
        self._edges = Edges(workspace=Workspace(str(self._workspace or Path.cwd())))
        for tool in built_in_tools(lambda: self._edges):
            self.register(tool)

    def placed(self, governance: GovernanceConfig) -> GovernanceConfig:
        return governance if self._workspace is None else governance.at(self._workspace)

    def govern(self, governance: GovernanceConfig) -> None:
        self._edges = governance.file.edges()


@explained
def builtin_registry(workspace: str | Path | None = None) -> ToolRegistry:
    """Return a new registry with every built-in tool.

    Paths begin at `workspace`, which the governance file of a layer follows; without one, at the workspace of the
    governance file, the current directory by default.
    """
    return BuiltinRegistry(workspace)


_sandbox: Sandbox | None = None
_lock = threading.Lock()


def _the_sandbox() -> Sandbox:
    """The process's sandbox for single commands: tested once, closed at the end."""
    global _sandbox
    with _lock:
        if _sandbox is None:
            _sandbox = Sandbox()
            atexit.register(_sandbox.close)
        return _sandbox


@explained
def execute_shell_command_sandboxed(command: Sequence[str], timeout: float = 30) -> dict[str, Any]:
    """Run a command, given as a list, in the sandbox: no shell, no network, the current directory read-only.

    Returns stdout, stderr and exit_code. A command that takes longer than `timeout` is killed with everything it
    started. Raises SandboxError where no sandbox can be made: then nothing ran.
    """
    if isinstance(command, str) or not command or not all(isinstance(word, str) for word in command):
        raise UsageError("A command is a list of words, such as ['ls', '-l']; no shell reads it.")
    if not 0 < timeout < float("inf"):
        raise UsageError("The timeout must be a positive number of seconds.")
    program = shutil.which(command[0], path=SEARCHED)
    if program is None:
        return {"stdout": "", "stderr": f"{command[0]}: command not found", "exit_code": 127}
    here = os.getcwd()
    confined = Confined(
        argv=(os.path.abspath(program), *command[1:]),
        cwd=here,
        readable=(here,),
        environment={"PATH": SEARCHED, "LANG": "C.UTF-8", "HOME": "/tmp"},  # the sandbox's own
        timeout_s=timeout,
    )
    finished = _the_sandbox().run(confined)
    if finished.ending == "timeout":
        return dict(TIMED_OUT)
    return {
        "stdout": finished.stdout.decode("utf-8", "replace"),
        "stderr": finished.stderr.decode("utf-8", "replace"),
        "exit_code": finished.exit_code,
    }
