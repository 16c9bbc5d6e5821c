"""Globs over resolved paths, compiled to one linear-time expression. Resolution happens in `files`.

`*` and `?` stay within a name, `**` crosses them, `[abc]` and `[!abc]` are sets, `{a,b}` are alternatives; a
backslash takes the next character literally. A dot is an ordinary character.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import re2

from toolgate.errors import UsageError
from toolgate.guards.files import PathFact

SENSITIVE = (
    ".env",
    ".env.*",
    "!.env.example",
    "!.env.sample",
    "!.env.template",
    "!.env.dist",
    ".envrc",
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker/config.json",
    ".config/gcloud",
    ".config/gh",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".git-credentials",
    ".vault-token",
    "credentials.json",
    "service-account*.json",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    ".*_history",
)
"""Names that hold secrets wherever they lie: protected by default from reading and writing."""

STEERING = (
    ".git",
    ".hg",
    ".svn",
    "toolgate.yaml",
    "toolgate.yml",
    "toolgate.*.yaml",
    "toolgate.db*",
    "config/governance",
    ".bashrc",
    ".bash_profile",
    ".profile",
    ".zshrc",
    ".zprofile",
    ".zshenv",
)
"""Names that steer programs, or Toolgate itself: protected by default from writing."""


REMEMBERED = 1024
"""How many paths a set of patterns keeps the answer for: programs touch the same files again and again."""

_UNKNOWN = "\0"
_MEANT = frozenset("\\.+*?()|[]{}^$")


class PathPatterns:
    """A set of globs. `match` gives the pattern that covers a path, None where none does.

    A pattern that begins with `/` is absolute; one with a `/` inside starts at `base`, unless it begins with
    `**`; a bare name matches at any depth. `dir/**` covers `dir` as well. With `tree`, a pattern that covers a
    directory covers what is beneath it: right for denials, too much for permissions. `!pattern` is an exception
    to the others.
    """

    def __init__(
        self, patterns: Sequence[str], *, base: str = "/", ignore_case: bool = False, tree: bool = False
    ) -> None:
        self.patterns = tuple(patterns)
        self._made_with = {"base": base, "ignore_case": ignore_case, "tree": tree}
        self._known: dict[str, str | None] = {}
        self._covering = [pattern for pattern in self.patterns if not pattern.startswith("!")]
        exceptions = [pattern[1:] for pattern in self.patterns if pattern.startswith("!")]
        options = re2.Options()
        options.case_sensitive = not ignore_case
        options.dot_nl = True
        options.encoding = re2.Options.Encoding.UTF8
        options.log_errors = False
        self._options = options
        tail = "(?:/.*)?/" if tree else "/"
        self._all = self._compile([_anchored(pattern, base) for pattern in self._covering], tail)
        self._each = [self._compile([_anchored(pattern, base)], tail) for pattern in self._covering]
        self._except = self._compile([_anchored(pattern, base) for pattern in exceptions], tail)

    def as_json(self) -> dict[str, Any]:
        """Return what `of_json` makes the same set from, in another process."""
        return {"patterns": list(self.patterns), **self._made_with}

    @classmethod
    def of_json(cls, told: dict[str, Any]) -> PathPatterns:
        return cls(told["patterns"], base=told["base"], ignore_case=told["ignore_case"], tree=told["tree"])

    def match(self, path: str) -> str | None:
        """Return the pattern that covers a resolved, absolute path."""
        known = self._known.get(path, _UNKNOWN)
        if known is not _UNKNOWN:
            return known
        found = self._find(path)
        if len(self._known) >= REMEMBERED:
            self._known = {}
        self._known[path] = found
        return found

    def _find(self, path: str) -> str | None:
        # Bytes spare re2's wrapper its counting of characters, which costs more than the match.
        ended = (path.rstrip("/") + "/").encode("utf-8", "surrogateescape")
        if self._all is None or self._all.fullmatch(ended) is None:
            return None
        if self._except is not None and self._except.fullmatch(ended) is not None:
            return None
        for pattern, compiled in zip(self._covering, self._each, strict=True):
            if compiled is not None and compiled.fullmatch(ended) is not None:
                return pattern
        return None

    def match_fact(self, fact: PathFact) -> str | None:
        """Return the pattern that covers any of the names of what a fact is about."""
        for path in (fact.path, *fact.aliases):
            if (found := self.match(path)) is not None:
                return found
        return None

    def _compile(self, patterns: Sequence[str], tail: str) -> re2._Regexp | None:
        if not patterns:
            return None
        expression = f"(?:{'|'.join(map(translate, patterns))}){tail}"
        try:
            return re2.compile(expression, self._options)
        except re2.error as error:
            raise UsageError(f"The path pattern {patterns[0]!r} cannot be compiled: {error}.") from None


def _anchored(pattern: str, base: str) -> str:
    if not pattern or "\0" in pattern:
        raise UsageError("A path pattern must be a string that is not empty and has no NUL in it.")
    pattern = pattern.rstrip("/") or "/"
    if pattern.startswith("/"):
        return pattern
    if "/" not in pattern and pattern != "**":
        return f"/**/{pattern}"
    if pattern.startswith("**"):
        return f"/{pattern}"
    while pattern.startswith("./"):
        pattern = pattern[2:]
    return os.path.join(_quoted(base), pattern)


def _quoted(path: str) -> str:
    return "".join("\\" + char if char in "*?[]{}\\!" else char for char in path)


def _literal(char: str) -> str:
    return "\\" + char if char in _MEANT else char


def check_pattern(pattern: str) -> None:
    """Raise UsageError where a text, with or without its leading `!`, is no path pattern."""
    translate(_anchored(pattern.removeprefix("!"), "/"))


def translate(pattern: str) -> str:
    """Return the RE2 expression of a glob over an absolute path, without its closing `/`."""
    if pattern == "/":
        return ""
    return _Translation(pattern).run()


class _Translation:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._depth = 0

    def run(self) -> str:
        out: list[str] = []
        while self._at < len(self._pattern):
            out.append(self._next())
        if self._depth:
            raise UsageError(f"The path pattern {self._pattern!r} has a '{{' that is not closed.")
        return "".join(out)

    def _next(self) -> str:
        pattern, at = self._pattern, self._at
        if pattern.startswith("/**", at) and (at + 3 == len(pattern) or pattern[at + 3] == "/"):
            self._at += 3
            return "(?:/.*)?" if self._at == len(pattern) else "(?:/[^/]+)*"
        self._at += 1
        char = pattern[at]
        if char == "*":
            while pattern.startswith("*", self._at):
                self._at += 1
            return "[^/]*" if self._is_inner(at) else "[^/]+"
        if char == "?":
            return "[^/]"
        if char == "[":
            return self._set()
        if char in "{},":
            return self._brace(char)
        if char == "\\" and self._at < len(pattern):
            char = pattern[self._at]
            self._at += 1
        return _literal(char)

    def _is_inner(self, at: int) -> bool:
        """Whether a star shares its name with other characters; alone it stands for at least one."""
        before = at > 0 and self._pattern[at - 1] != "/"
        after = self._at < len(self._pattern) and self._pattern[self._at] != "/"
        return before or after

    def _brace(self, char: str) -> str:
        if char == "{":
            self._depth += 1
            return "(?:"
        if self._depth == 0:
            return _literal(char)
        if char == "}":
            self._depth -= 1
            return ")"
        return "|"

    def _set(self) -> str:
        start = self._at
        end = self._pattern.find("]", start + (2 if self._pattern.startswith("!", start) else 1))
        if end < 0:
            return _literal("[")
        body, self._at = self._pattern[start:end], end + 1
        negated = body.startswith(("!", "^"))
        body = body[1:] if negated else body
        escaped = "".join("\\" + char if char in "\\[]^&~" else char for char in body)
        return f"[^/{escaped}]" if negated else f"[{escaped}]"
