"""`python -m toolgate`: the `toolgate` command, for an interpreter whose scripts are not on the path."""

import os
import sys


def _leave_the_folder() -> None:
    """Take the working directory, where `python -m` begins to look for modules, off the search path again.

    Libraries that are loaded later, or not installed, would be taken from files that somebody put there.
    """
    here, home = os.getcwd(), os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if not sys.flags.safe_path and sys.path[:1] in ([""], [here]) and home != here:
        del sys.path[0]


def run() -> None:
    """Be the command."""
    _leave_the_folder()

    from toolgate.interfaces.cli import main

    main()


if __name__ == "__main__":  # pragma: no cover  # nothing is measured under this name
    run()
