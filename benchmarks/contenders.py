"""Who takes part: the scripts, the environments they run in, and how a fresh process of each is started."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
MEASURE_LIMIT_S = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One row of the comparison. Without an `environment` it runs in Toolgate's own."""

    name: str
    script: str
    path: str
    environment: str | None = None
    is_information: bool = False
    slowness: int = 1
    """Divides the number of calls, so that slow rows take about as long as fast ones."""


CONTENDERS = (
    Contender(name="toolgate", script="toolgate_call.py", path="`Gate.call`, governed"),
    Contender(name="validate_call", script="peers/validate_call.py", path="`validate_call`, JSON in and out"),
    Contender(
        name="stageflow",
        script="peers/stageflow.py",
        environment="stageflow",
        path="`AdvancedToolExecutor.execute`, events",
    ),
    Contender(
        name="pydantic_ai",
        script="peers/pydantic_ai.py",
        environment="pydantic_ai",
        path="`ToolManager.handle_call`",
    ),
    Contender(
        name="openai_agents",
        script="peers/openai_agents.py",
        environment="openai_agents",
        path="`FunctionTool.on_invoke_tool`",
    ),
    Contender(name="agno", script="peers/agno.py", environment="agno", path="`FunctionCall.aexecute`", slowness=4),
    Contender(
        name="langchain",
        script="peers/langchain.py",
        environment="langchain",
        path="`tool.ainvoke`",
        slowness=8,
    ),
    Contender(
        name="fastmcp",
        script="peers/fastmcp.py",
        environment="fastmcp",
        path="`FastMCP.call_tool`",
        slowness=8,
    ),
    Contender(
        name="fastmcp_client",
        script="peers/fastmcp.py",
        environment="fastmcp",
        path="`Client.call_tool`, in memory",
        is_information=True,
        slowness=20,
    ),
    Contender(
        name="stageflow_validating",
        script="peers/stageflow.py",
        environment="stageflow",
        path="the same, validating in the handler",
        is_information=True,
    ),
    Contender(
        name="validate_call_kwargs",
        script="peers/validate_call.py",
        path="`validate_call`, ready keywords, no JSON",
        is_information=True,
    ),
)


class MeasurementFailedError(Exception):
    """A measuring process ended without its line; the message is the end of what it said."""


def measure(python: Path, *arguments: str, is_own: bool) -> dict[str, Any]:
    """Run the interpreter with these arguments and return the JSON line the process printed last."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environ.update(LANGSMITH_TRACING="false", AGNO_TELEMETRY="false", OPENAI_AGENTS_DISABLE_TRACING="1")
    if is_own:
        environ["PYTHONPATH"] = str(REPOSITORY / "src")
    try:
        done = subprocess.run(
            [str(python), *arguments],
            capture_output=True,
            text=True,
            timeout=MEASURE_LIMIT_S,
            env=environ,
            cwd=REPOSITORY,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise MeasurementFailedError(f"it took longer than {MEASURE_LIMIT_S} s") from error
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()
        raise MeasurementFailedError(said[-1][:300])
    measured: dict[str, Any] = json.loads(lines[-1])
    return measured


def own_python() -> Path:
    """Return the interpreter Toolgate is measured with: the one that runs this suite."""
    return Path(sys.executable)
