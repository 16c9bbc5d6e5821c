"""Who takes part: the scripts, the environments they run in, and how a fresh process of each is started."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
MEASURE_LIMIT_S = 600


EARLIER = "toolgate_2e57217"
"""The environment of the commit that today's Toolgate is compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One row of the comparison. Without an `environment` it runs in Toolgate's own."""

    name: str
    script: str
    path: str
    group: str = "call"
    """The table it stands in; rows of one group do the same work."""
    case: str | None = None
    """The script's case, where it is not called like the row."""
    work: str = "flat"
    environment: str | None = None
    is_information: bool = False
    slowness: int = 1
    """Divides the number of calls, so that slow rows take about as long as fast ones."""

    @property
    def is_ours(self) -> bool:
        """Whether this is Toolgate as it is checked out, which the others of its group are compared with."""
        return self.script == "toolgate_call.py" and self.environment is None


FLAT = (
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


def _on_form(work: str, size: str) -> tuple[Contender, ...]:
    """Return those that take part with a form, instead of the flat call; `size` ends their names."""
    rows = {contender.name: contender for contender in FLAT}
    earlier = replace(rows["toolgate"], name=EARLIER, path="`Gate.call` of an earlier commit", environment=EARLIER)
    return tuple(
        replace(row, name=f"{row.name}_{size}", case=case, work=work, group=work)
        for row, case in (
            (rows["toolgate"], "toolgate"),
            (rows["stageflow"], "stageflow"),
            (rows["pydantic_ai"], "pydantic_ai"),
            (earlier, "toolgate"),
        )
    )


TODAY_APPROVAL = Contender(
    name="toolgate_approval",
    script="toolgate_call.py",
    path="ask, decide, run, record",
    group="approval",
    case="approval",
    work="form_300",
    slowness=4,
)
CONTENDERS = (
    *FLAT,
    *_on_form("form_300", "300"),
    *_on_form("form_2k", "2k"),
    TODAY_APPROVAL,
    replace(
        TODAY_APPROVAL,
        name=f"{EARLIER}_approval",
        path="the same in an earlier commit",
        environment=EARLIER,
    ),
)
GROUPS = tuple(dict.fromkeys(contender.group for contender in CONTENDERS))


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
