"""Run one Python callable inside the sandbox: read it from stdin, report on the descriptor that was stdout.

What is printed goes to stderr. The report is one JSON object per line: progress, then the value or the failure.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import os
import pickle
import runpy
import sys
import types
from collections.abc import Callable
from typing import Any

from toolgate.errors import text_of
from toolgate.kernel.context import Context
from toolgate.kernel.doubt import carried_kinds
from toolgate.kernel.input import ToolInput
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.payload import plain
from toolgate.kernel.record import evolve
from toolgate.kernel.tool import ToolDefinition
from toolgate.kernel.transient import is_transient
from toolgate.kernel.undo import UndoMetadata

BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from toolgate.adapters.runners.sandbox.child import main; main()"
)


def find(module: str, name: str, main_file: str | None) -> Callable[..., Any]:
    """Return the callable of this name; the function of a tool where the name is the tool's."""
    if module == "__main__":
        found: Any = _run_script(main_file)
    else:
        found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if isinstance(found, ToolDefinition):
        found = found.function or found.handler
    if not callable(found):
        raise TypeError(f"{module}.{name} is not callable")
    called: Callable[..., Any] = found
    return called


def _run_script(path: str | None) -> types.ModuleType:
    """Run a script again, under another name than `__main__`, for the functions it defines."""
    if path is None:
        raise ImportError("the function stands in no file that the sandbox could read; move it to a module")
    home = types.ModuleType("__main__")
    sys.modules["__main__"] = home
    try:
        vars(home).update(runpy.run_path(path, run_name="__toolgate_child__"))
    except (Exception, SystemExit) as error:
        raise ImportError(
            f"the script {path} was read again in the sandbox to find the function, and failed "
            f"({type(error).__name__}: {error}). Put what the script does under `if __name__ == '__main__':`, or "
            "move the function to a module"
        ) from error
    return home


def _told(value: object) -> dict[str, Any]:
    if isinstance(value, ToolOutput):
        return {"output": value.to_dict()}
    return {"value": plain(value)}


def main() -> None:
    """Do the work that stdin describes."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as report:
        os.dup2(2, 1)

        def tell(told: dict[str, Any]) -> None:
            report.write(json.dumps(told) + "\n")
            report.flush()

        try:
            tell(_told(_work(pickle.loads(sys.stdin.buffer.read()), tell)))
        except Exception as error:  # noqa: BLE001  # whatever the callable raises is its failure, told as such
            tell(_failure(error))


def _failure(error: Exception) -> dict[str, Any]:
    return {
        "raised": type(error).__name__,
        "text": text_of(error),
        "transient": is_transient(error),
        "kinds": sorted(carried_kinds(error)),
        "began": not isinstance(error, _NotFoundError),
    }


class _NotFoundError(ImportError):
    """The callable could not be found, so it was not called."""


def _work(asked: dict[str, Any], tell: Callable[[dict[str, Any]], None]) -> Any:
    try:
        hook = asked["pickled"] or find(asked["name"][0], asked["name"][1], asked["main"])
    except Exception as error:
        raise _NotFoundError(text_of(error)) from error

    def progress(fraction: float | None, message: str | None, data: object) -> Any:
        tell({"progress": [fraction, message, plain(data)]})
        return _nothing() if asked["is_async"] else None

    args = [_restored(value, progress) for value in asked["args"]]
    kwargs = {name: _restored(value, progress) for name, value in asked["kwargs"].items()}
    value = hook(*args, **kwargs)
    return asyncio.run(_await(value)) if inspect.isawaitable(value) else value


async def _nothing() -> None:
    return None


async def _await(value: Any) -> Any:
    return await value


def _restored(value: Any, progress: Callable[..., Any]) -> Any:
    if isinstance(value, tuple) and len(value) == 2 and value[0] == "toolgate-input":
        fields = value[1]
        context, key = fields["context"], fields["effect_key"]
        given = ToolInput(fields["id"], fields["tool"], fields["payload"], context, context=context, effect_key=key)
        given.attach(progress, lambda: False)
        return given
    return value


def carried(value: Any) -> Any:
    """Return what can be sent of an argument: an input travels by its parts, without the host's own object."""
    if isinstance(value, ToolInput):
        context = evolve(value.context, host=None)
        parts = {"id": value.action_id, "tool": value.tool_name, "payload": value.payload, "context": context}
        return ("toolgate-input", parts | {"effect_key": value.effect_key})
    if isinstance(value, UndoMetadata):
        return value
    return evolve(value, host=None) if isinstance(value, Context) else value
