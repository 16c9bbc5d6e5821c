"""`python -m toolgate`: the `toolgate` command, for an interpreter whose scripts are not on the path."""

from toolgate.interfaces.cli import main

if __name__ == "__main__":
    main()
