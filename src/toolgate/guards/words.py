"""The words of a command line, before any grammar reads them, and the refusal of a line that none knows."""

from __future__ import annotations

from collections.abc import Sequence

from toolgate.guards import Refused


class ArgvRefused(Refused):
    """The command line is not one the grammar knows. `program`: what it would run, where that has no grammar."""

    def __init__(self, kind: str, text: str, *, program: str = "") -> None:
        super().__init__(kind, text)
        self.program = program


def checked(argv: Sequence[str]) -> list[str]:
    """Return the words of a line; ArgvRefused for what can be none."""
    if not isinstance(argv, list | tuple) or not argv:
        raise ArgvRefused(
            "empty",
            f"{str(argv)[:80]!r} is no command line: that is a list of the command's name, then its arguments.",
        )
    for number, word in enumerate(argv):
        if not isinstance(word, str):
            raise ArgvRefused("encoding", f"{_place(number, word)} must be a string. Put it in quotes.")
        if "\0" in word:
            raise ArgvRefused("nul", f"{_place(number, word)} holds a NUL character, which none can. Leave it out.")
        try:
            word.encode()
        except UnicodeEncodeError:
            said = f"{_place(number, word)} must be valid UTF-8 text. Name it in another way."
            raise ArgvRefused("encoding", said) from None
    return list(argv)


def _place(number: int, word: object) -> str:
    return f"Word {number} of the command line ({str(word)[:80]!r})"
