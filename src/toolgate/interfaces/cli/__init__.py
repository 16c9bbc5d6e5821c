"""The `toolgate` command. Commands import what they need when they run, so that `--help` is quick."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; an error of ours is one line on stderr and exit code 1."""
    from toolgate.errors import ToolgateError
    from toolgate.interfaces.cli.app import app

    try:
        app()
    except ToolgateError as error:
        sys.stderr.write(f"toolgate: {error}\n")
        sys.exit(1)
