"""Take a shell line apart into the commands it runs, without a shell.

One pass over the text. What is read means to bash and dash exactly what is returned: words, variables in front of
them, redirections, pipes and `&&`, `||`, `;`. Patterns are told apart from words; `expansion` finds what they stand
for. Whatever else a shell would compute (substitution, variables, loops, functions, jobs) makes the whole line one that
cannot be split, never one that is guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, NoReturn

from toolgate.guards import Refused

MAX_CHARACTERS = 32_768
MAX_COMMANDS = 100
Connector = Literal["&&", "||", ";"]
RedirectKind = Literal["read", "write", "append", "same"]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIMPLE_BRACES = re.compile(r"(?:[^{}]|\{[^{},\0]*,[^{}\0]*\})*\Z")
_OPERATORS = ("&>>", "&&", "||", ">>", "<<", ">&", "<&", "<>", ">|", "&>", "|&", ";;", "\n", ";", "|", "&", "<", ">")
_COMPUTED = {
    "$": "a variable or substitution ('$')",
    "`": "a substitution ('`')",
    "(": "a group or function ('(')",
    ")": "a group or function (')')",
}
RESERVED = frozenset(
    "! [[ ]] { } case coproc do done elif else esac fi for function if in select then until while".split()
)
BUILT_IN = frozenset(
    ". : alias bg bind break builtin caller command compgen complete continue declare dirs disown enable eval exec "
    "exit export fc fg getopts hash help history jobs let local logout mapfile popd pushd read readarray "
    "readonly return set shift shopt source suspend times trap type typeset ulimit umask unalias unset wait".split()
)
"""Words that change the shell itself; no program does what they do. `cd` is understood."""


class Unsplittable(Refused):
    """The line is more than commands joined together: only a shell could run it."""

    def __init__(self, what: str) -> None:
        super().__init__("unsplittable", f"The line cannot be split into commands: it has {what}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """Where a descriptor leads: to a file by its name, or (`same`) where another descriptor leads now."""

    descriptor: int
    kind: RedirectKind
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Simple:
    """One command: its words, the variables set for it alone, and its redirections in their order.

    patterns: which of the words, by their place, are patterns to a shell; what was quoted there is behind a backslash.
    """

    words: tuple[str, ...]
    patterns: tuple[tuple[int, str], ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Commands that a pipe joins, and when they run: always (`;`), after a success or after a failure."""

    connector: Connector
    commands: tuple[Simple, ...]


@dataclass(slots=True)
class _Token:
    """A word with what was not quoted of it, or an operator. touches: nothing stands between it and what follows.

    pattern: the word with a backslash before all that was quoted, where a shell would expand it.
    """

    text: str
    is_operator: bool = False
    is_plain: bool = True
    assigns: str = ""
    touches: bool = False
    pattern: str = ""


def split(text: str) -> tuple[Step, ...]:
    """Return the steps of a line; Unsplittable where it is more than that."""
    if len(text) > MAX_CHARACTERS:
        raise Unsplittable(f"more than {MAX_CHARACTERS} characters")
    return _Steps(_Reader(text).tokens()).read()


@dataclass(slots=True)
class _Reader:
    """Reads characters into tokens, by the quoting rules that bash and dash share."""

    text: str
    at: int = 0
    found: list[_Token] = field(default_factory=list)

    def tokens(self) -> list[_Token]:
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t":
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif (operator := self._operator()) is not None:
                self.at += len(operator)
                self.found.append(_Token(operator, is_operator=True))
            else:
                self.found.append(self._word())
        return self.found

    def _operator(self) -> str | None:
        return next((each for each in _OPERATORS if self.text.startswith(each, self.at)), None)

    def _word(self) -> _Token:
        if self.text[self.at] == "#":
            raise Unsplittable("a comment ('#')")
        parts: list[str] = []
        bare: list[str] = []  # the same word, with a mark wherever it was quoted
        pattern: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t" or self._operator() is not None:
                break
            before = len(bare)
            piece = self._piece(char, bare)
            parts.append(piece)
            pattern.append(piece if "\0" not in bare[before:] else "".join(f"\\{each}" for each in piece))
        shape = "".join(bare)
        is_pattern = _is_pattern(shape)
        name = _NAME.match(shape)
        assigns = name.group() if name is not None and shape[name.end() : name.end() + 1] == "=" else ""
        if name is not None and shape.startswith("+=", name.end()):
            raise Unsplittable("an addition to a variable ('+=')")
        return _Token(
            "".join(parts),
            is_plain="\0" not in shape,
            assigns=assigns,
            touches=self.at < len(self.text) and self.text[self.at] in "<>",
            pattern="".join(pattern) if is_pattern else "",
        )

    def _piece(self, char: str, bare: list[str]) -> str:
        """Return what one character, or one quoted part, adds to a word."""
        if char == "'":
            end = self.text.find("'", self.at + 1)
            if end < 0:
                raise Unsplittable("a quote that does not end")
            part, self.at = self.text[self.at + 1 : end], end + 1
            bare.append("\0")
            return _checked(part)
        if char == '"':
            bare.append("\0")
            return _checked(self._double())
        if char == "\\":
            return self._escaped(bare)
        if char in _COMPUTED:
            raise Unsplittable(_COMPUTED[char])
        self.at += 1
        bare.append(char)
        return _checked(char, quoted=False)

    def _escaped(self, bare: list[str]) -> str:
        follower = self.text[self.at + 1 : self.at + 2]
        if not follower:
            raise Unsplittable("a backslash at its end")
        self.at += 2
        if follower == "\n":
            return ""
        bare.append("\0")
        return _checked(follower)

    def _double(self) -> str:
        parts: list[str] = []
        self.at += 1
        while True:
            char = self.text[self.at : self.at + 1]
            if not char:
                raise Unsplittable("a quote that does not end")
            if char == '"':
                self.at += 1
                return "".join(parts)
            if char in "$`":
                raise Unsplittable(_COMPUTED[char])
            follower = self.text[self.at + 1 : self.at + 2]
            if char == "\\" and follower and follower in '$`"\\\n':
                parts.append("" if follower == "\n" else follower)
                self.at += 2
            else:
                parts.append(char)
                self.at += 1


def _checked(part: str, *, quoted: bool = True) -> str:
    for char in part:
        is_control = char < " " and not (quoted and char in "\t\n")
        if is_control or char == "\x7f" or (not quoted and char.isspace()) or "\ud800" <= char <= "\udfff":
            raise Unsplittable(f"the character {char!r}")
    return part


def _is_pattern(shape: str) -> bool:
    """Whether a shell would expand a word to others; Unsplittable where that is more than names and simple braces.

    `\\0` stands for what was quoted.
    """
    if re.search(r"(?:^|[=:])~", shape):
        raise Unsplittable("a home directory ('~')")
    has_braces = "{" in shape and "," in shape
    if ("{" in shape and ".." in shape) or (has_braces and not _SIMPLE_BRACES.match(shape)):
        raise Unsplittable("an expansion ('{')")
    return has_braces or "*" in shape or "?" in shape or "]" in shape.partition("[")[2]


@dataclass(slots=True)
class _Steps:
    """Puts tokens together to steps."""

    tokens: list[_Token]
    at: int = 0
    steps: list[Step] = field(default_factory=list)

    def read(self) -> tuple[Step, ...]:
        connector: Connector = ";"
        self._skip_newlines()
        while self.at < len(self.tokens):
            self.steps.append(Step(connector=connector, commands=self._pipeline()))
            if sum(len(step.commands) for step in self.steps) > MAX_COMMANDS:
                raise Unsplittable(f"more than {MAX_COMMANDS} commands")
            if self.at == len(self.tokens):
                return tuple(self.steps)
            connector = self._connector()
        if not self.steps or connector != ";":
            raise Unsplittable("a place where a command is missing")
        return tuple(self.steps)

    def _connector(self) -> Connector:
        operator = self.tokens[self.at].text
        self.at += 1
        if operator in (";", "\n"):
            self._skip_newlines()
            return ";"
        if operator not in ("&&", "||"):
            self._refuse(operator)
        self._skip_newlines()
        return "&&" if operator == "&&" else "||"

    def _skip_newlines(self) -> None:
        while self.at < len(self.tokens) and self.tokens[self.at].is_operator and self.tokens[self.at].text == "\n":
            self.at += 1

    def _pipeline(self) -> tuple[Simple, ...]:
        found = [self._simple()]
        while self.at < len(self.tokens) and self.tokens[self.at].text == "|" and self.tokens[self.at].is_operator:
            self.at += 1
            self._skip_newlines()
            found.append(self._simple())
        return tuple(found)

    def _simple(self) -> Simple:
        words: list[str] = []
        patterns: list[tuple[int, str]] = []
        variables: list[tuple[str, str]] = []
        redirects: list[Redirect] = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.is_operator:
                if token.text in ("\n", ";", "|", "&&", "||"):
                    break
                redirects += self._redirect(None)
            elif token.touches and token.is_plain and token.text.isdigit():
                self.at += 1
                redirects += self._redirect(token.text)
            else:
                self.at += 1
                if token.pattern:
                    patterns.append((len(words), token.pattern))
                _take(token, words, variables)
        if not words:
            raise Unsplittable("a place where a command is missing")
        if words[0] == "command":
            words = _looked_for(words)
            patterns = [(number - 1, pattern) for number, pattern in patterns]
        return Simple(
            words=tuple(words), patterns=tuple(patterns), variables=tuple(variables), redirects=tuple(redirects)
        )

    def _redirect(self, number: str | None) -> list[Redirect]:
        operator = self.tokens[self.at].text
        self.at += 1
        if operator not in ("<", ">", ">>", ">&", "&>"):
            self._refuse(operator)
        if self.at == len(self.tokens) or self.tokens[self.at].is_operator:
            raise Unsplittable("a redirection to nothing")
        target = self.tokens[self.at]
        self.at += 1
        if number not in (None, "0", "1", "2") or not target.text or target.touches:
            raise Unsplittable("a redirection of another descriptor than 0, 1 or 2")
        if target.pattern:
            raise Unsplittable("a redirection to a pattern")
        if operator == ">&":
            if not target.is_plain or target.text not in ("0", "1", "2"):
                raise Unsplittable("a redirection to another descriptor than 0, 1 or 2")
            return [Redirect(descriptor=int(number or 1), kind="same", target=target.text)]
        if operator == "&>":
            written = Redirect(descriptor=1, kind="write", target=target.text)
            return [written, Redirect(descriptor=2, kind="same", target="1")]
        kind: RedirectKind = "read" if operator == "<" else "write" if operator == ">" else "append"
        descriptor = int(number) if number is not None else 0 if kind == "read" else 1
        return [Redirect(descriptor=descriptor, kind=kind, target=target.text)]

    def _refuse(self, operator: str) -> NoReturn:
        if operator == "&":
            raise Unsplittable("a command in the background ('&')")
        raise Unsplittable(f"the operator {operator!r}")


def _looked_for(words: list[str]) -> list[str]:
    """Return the command that says where programs are, as `command -v` does; anything else changes the shell."""
    if words[1:2] != ["-v"] or not words[2:] or any(word.startswith("-") for word in words[2:]):
        raise Unsplittable("the word 'command', which changes the shell itself")
    return ["which", *words[2:]]


def _take(token: _Token, words: list[str], variables: list[tuple[str, str]]) -> None:
    """Account for a word: a variable where no command came yet, or a word of the command."""
    if token.touches and token.text.startswith("{"):
        raise Unsplittable("a redirection by name ('{')")
    if not words and token.pattern:
        raise Unsplittable("a pattern where a variable or a command's name stands")
    if not words and token.assigns:
        variables.append((token.assigns, token.text[len(token.assigns) + 1 :]))
        return
    is_first = not words or words == ["time"]
    if is_first and token.is_plain and token.text in RESERVED:
        raise Unsplittable(f"the word {token.text!r}")
    if is_first and (token.text in BUILT_IN - {"command"} or (words and token.text == "cd")):
        raise Unsplittable(f"the word {token.text!r}, which changes the shell itself")
    words.append(token.text)
