"""The public names, and that importing the package is cheap."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from typing import Any

import pytest

import toolgate
from toolgate import agent, server
from toolgate.kernel.signature import tool
from toolgate.kernel.tool import ToolDefinition


def in_a_fresh_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return done.stdout.strip()


@pytest.mark.parametrize("name", toolgate.__all__)
def test_every_public_name_can_be_had_and_is_listed(name: str) -> None:
    value: Any = getattr(toolgate, name)
    assert value.__name__ == name
    assert name in dir(toolgate)


def test_a_public_name_is_the_object_of_its_home() -> None:
    assert toolgate.ToolDefinition is ToolDefinition
    assert toolgate.tool is tool


def test_the_list_of_public_names_is_sorted_and_complete() -> None:
    assert toolgate.__all__ == sorted(toolgate._HOMES)


def test_an_unknown_name_is_an_ordinary_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'toolgate' has no attribute 'nope'"):
        toolgate.nope  # noqa: B018  # what is tested
    assert not hasattr(toolgate, "nope")


def test_the_version_is_the_installed_one() -> None:
    assert toolgate.__version__ == version("toolgate")


def test_importing_the_package_loads_nothing_of_it() -> None:
    code = "import sys, toolgate; print(*sorted(n for n in sys.modules if n.split('.')[0] in ('toolgate', 'pydantic')))"
    assert in_a_fresh_process(code) == "toolgate"


def test_a_name_is_loaded_at_first_use_and_kept() -> None:
    code = (
        "import sys, toolgate; before = 'Context' in vars(toolgate); toolgate.Context;"
        "print(before, 'Context' in vars(toolgate), 'toolgate.gate' in sys.modules)"
    )
    assert in_a_fresh_process(code) == "False True False"


def test_plain_definitions_do_not_need_pydantic() -> None:
    code = "import sys, toolgate; toolgate.ToolDefinition('edit', {}, len);print('pydantic' in sys.modules)"
    assert in_a_fresh_process(code) == "False"


def test_the_modules_for_servers_and_agents_have_what_they_name() -> None:
    assert [name for module in (server, agent) for name in module.__all__ if not hasattr(module, name)] == []
