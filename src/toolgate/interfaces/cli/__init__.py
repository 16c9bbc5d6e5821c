"""The `toolgate` command. Commands import what they need when they run, so that `--help` is quick."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> None:
    """Run the command line; an error of ours, or an extra that is missing, is one line on stderr and exit code 1.

    Ctrl-C and SIGTERM end every command, whatever the process that started it ignores.
    """
    from toolgate.interfaces.cli.signals import heeded

    with heeded():
        _run()


def _run() -> None:
    from toolgate.errors import ToolgateError
    from toolgate.interfaces.cli.app import app

    try:
        app()
    except ToolgateError as error:
        _end(error)
    except ModuleNotFoundError as error:
        from toolgate.bootstrap import uninstalled

        said = uninstalled(error)
        if said is None:
            raise
        _end(said)


def _end(error: Exception) -> NoReturn:
    sys.stderr.write(f"toolgate: {error}\n")
    sys.exit(1)
