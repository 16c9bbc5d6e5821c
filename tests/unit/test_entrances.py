"""The two files that are only ever entered: `python -m toolgate`, and `toolgate.server`."""

from __future__ import annotations

import importlib
import runpy
import sys
from pathlib import Path
from types import ModuleType

import pytest

import toolgate

HOME = Path(toolgate.__file__).parent
APP = "toolgate.interfaces.server.app"


def test_python_m_toolgate_is_the_command_and_looks_for_no_modules_in_the_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["toolgate", "--version"])
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    with pytest.raises(SystemExit) as ended:
        importlib.import_module("toolgate.__main__").run()
    assert ended.value.code in (None, 0)
    assert toolgate.__version__ in capsys.readouterr().out
    assert sys.path[0] != ""


def test_a_server_without_its_libraries_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lacking(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise ModuleNotFoundError("No module named 'starlette'", name="starlette")

    monkeypatch.setitem(sys.modules, APP, Lacking(APP))
    with pytest.raises(ImportError, match="extra `server`"):
        runpy.run_path(str(HOME / "server.py"))


def test_a_server_whose_own_module_is_missing_says_so_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, APP, None)  # as the import system marks what is not there
    with pytest.raises(ModuleNotFoundError, match=r"toolgate\.interfaces\.server\.app"):
        runpy.run_path(str(HOME / "server.py"))
