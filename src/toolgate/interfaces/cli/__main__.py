"""`python -m toolgate.interfaces.cli` is the `toolgate` command."""

from toolgate.interfaces.cli import main

if __name__ == "__main__":
    main()
