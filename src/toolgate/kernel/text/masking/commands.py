"""Find passwords in command lines: after flags, given to well-known commands, set in environments, in lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from toolgate.kernel.text.lazy_pattern import lazy_pattern
from toolgate.kernel.text.masking.keys import MASK, Span, Style, Verdict, judge, reads_as_secret

_VALUE: Final = (
    r"(?P<quote>[\"']?)(?P<value>(?:(?<=\")[^\"\n]++|(?<=')[^'\n]++"
    r"|[^\s\"'\-|<](?:[^\s\"'|]++|[\"'|](?=[^\s\"'|,)\]}]))*))"
)
_NEAR: Final = r"[ \t][^\n|;&]{0,80}?"
_FLAG: Final = lazy_pattern(r"-(?<![\w\-]-)-?(?P<name>[A-Za-z][\w\-]{1,48}+)(?:[ \t]+(?:\\\n\s*+)?)" + _VALUE)
_ECHO: Final = r"\becho[ \t]+(?:-n[ \t]+)?(?=[^|\n]{1,200}\|[^|\n]{0,120}(?:--password-stdin|sudo -S|--with-token))"
_IDENTIFIED: Final = r"\b(?i:identified\s{1,8}(?:with\s{1,8}\S{1,40}\s{1,8})?by)\s{1,8}(?i:password\s{1,8})?(?=[\"'])"
_NOUNS: Final = frozenset("flag flags option options argument arguments parameter switch value instead which".split())


class Command(NamedTuple):
    """A command, or a word of one, that stands before a password; only where `needs` is in the text, too."""

    word: str
    needs: str
    pattern: re.Pattern[str]


COMMANDS: Final = tuple(
    Command(word, needs, lazy_pattern(pattern + _VALUE))
    for word, needs, pattern in (
        ("mysql", " -p", rf"\bmysql\w{{0,8}}{_NEAR}(?<=\s)-p(?=[^\s\-])"),
        ("mariadb", " -p", rf"\bmariadb[\w\-]{{0,8}}{_NEAR}(?<=\s)-p(?=[^\s\-])"),
        ("7z", " -p", rf"\b7za?{_NEAR}(?<=\s)-p(?=[^\s\-])"),
        ("sshpass", " -p", r"\bsshpass[ \t]+-p[ \t]*"),
        ("login", " -p", rf"\blogin{_NEAR}(?<=\s)-p(?:[ \t]+|=)"),
        ("mongo", " -p", rf"\bmongo\w{{0,8}}{_NEAR}(?<=\s)-p[ \t]+"),
        ("cqlsh", " -p", rf"\bcqlsh{_NEAR}(?<=\s)-p[ \t]+"),
        ("-pass", " pass:", r"-pass(?:in|out)?[ \t]+pass:"),
        ("echo", "--password-stdin", _ECHO),
        ("echo", "sudo -S", _ECHO),
        ("echo", "--with-token", _ECHO),
        ("sqlcmd", " -P ", rf"\bsqlcmd{_NEAR}(?<=\s)-P[ \t]+"),
        ("zip", " -P ", rf"\bzip{_NEAR}(?<=\s)-P[ \t]+"),
        ("unzip", " -P ", rf"\bunzip{_NEAR}(?<=\s)-P[ \t]+"),
        ("mosquitto_", " -P ", rf"\bmosquitto_\w{{3}}{_NEAR}(?<=\s)-P[ \t]+"),
        ("redis-cli", " -a ", rf"\bredis-cli{_NEAR}(?<=\s)-a[ \t]+"),
        ("ldap", " -w ", rf"\bldap\w{{3,10}}{_NEAR}(?<=\s)-w[ \t]+"),
        ("curl", " -b", rf"\bcurl{_NEAR}(?<=\s)-b[ \t]*(?=[\"']?[\w\-]+=)"),
        ("requirepass", "requirepass", r"\brequirepass[ \t]+"),
        ("login", "password", r"\blogin[ \t\n]{1,8}\S{1,64}[ \t\n]{1,8}password[ \t\n]{1,8}"),
        ("identified", "identified", _IDENTIFIED),
    )
)
SETTERS: Final = ("ENV ", "setx ", " set ")
"""What stands before a name and its value."""
USERS: Final = ("-u", "-proxy-user", "-auth")
"""What stands, after another dash or none, before a name and a password."""
_SETTER_PATTERNS: Final = {
    setter: lazy_pattern(setter + where + r"[ \t]*(?P<name>[A-Za-z_][\w.\-]{2,64}+)[ \t]+" + _VALUE)
    for setter, where in zip(
        SETTERS,
        ("", "", r"(?:(?<=config set )|(?<=configure set )|(?<=secret set )|(?<=secrets set ))"),
        strict=True,
    )
}
_USER: Final = lazy_pattern(
    r"-(?<![\w\-]-)(?:u|-user|U|-proxy-user|-auth)(?:[ \t]*|=)[\"']?"
    r"(?P<user>[\w.@+\-\\]{1,64})(?P<colon>[:%])(?P<value>[^\s\"']+)"
)
_GROUPED: Final = ("docker", "podman", "kubectl", "nerdctl", "chown", "install", "rsync")
"""Commands whose `-u` takes a user and a group."""

_SHORT_FLAGS: Final = {
    "-p": frozenset({"sshpass", "login", "mongo", "mongosh", "mongodump", "mongorestore", "cqlsh"}),
    "-a": frozenset({"redis-cli"}),
    "-w": frozenset({"ldapsearch", "ldapadd", "ldapmodify", "ldapwhoami", "ldapdelete"}),
    "-P": frozenset({"sqlcmd", "bcp", "zip", "unzip", "mosquitto_pub", "mosquitto_sub"}),
    "-b": frozenset({"curl"}),
}
_WITH_USER: Final = ("curl", "http", "https", "smbclient")
_IS_FLAG: Final = lazy_pattern(r"--?[A-Za-z][\w\-]*(?:=.*)?|-|--")
_ATTACHED: Final = frozenset({"mysql", "mysqldump", "mysqladmin", "mariadb", "mariadb-dump", "sshpass", "7z", "7za"})


def command_span(command: Command, text: str, at: int) -> Span | None:
    """Return where the password lies that is given to the command at this place."""
    match = command.pattern.match(text, at)
    return match.span("value") if match and _is_secret(match["value"], Style.EQUALS) else None


def flag_spans(text: str) -> list[tuple[Span, Span]]:
    """Return where all flags lie that name a secret, each with where its value lies."""
    return [(match.span("name"), match.span("value")) for match in _FLAG.finditer(text) if _is_named_secret(match)]


def setter_span(setter: str, text: str, at: int) -> Span | None:
    """Return where the value lies of a variable naming a secret that is set at this place."""
    match = _SETTER_PATTERNS[setter].match(text, at)
    return match.span("value") if match and _is_named_secret(match) else None


def user_span(text: str, at: int) -> Span | None:
    """Return where the password lies in `-u name:password` whose dash stands at this place."""
    match = _USER.match(text, at) or (_USER.match(text, at - 1) if at else None)
    if match is None:
        return None
    line_start = text.rfind("\n", max(0, match.start() - 200), match.start()) + 1
    line = text[max(line_start, match.start() - 200) : match.start()]
    if match["value"] == match["user"] or any(name in line and re.search(rf"\b{name}\b", line) for name in _GROUPED):
        return None
    return match.span("value") if _is_secret(match["value"], Style.ENV) else None


def _is_secret(value: str, style: Style) -> bool:
    return reads_as_secret(value, "", Verdict.SECRET, style)


def _is_named_secret(match: re.Match[str]) -> bool:
    verdict, value = judge(match["name"]), match["value"]
    described = value.lower() in _NOUNS or (value.isupper() and value.isalpha()) or value.startswith("id=")
    if verdict < Verdict.WEAK or described:
        return False
    return reads_as_secret(value, "", verdict, Style.QUOTED if match["quote"] else Style.EQUALS)


def mask_argv(items: Sequence[object]) -> dict[int, str]:
    """Return the masked form of each argument that is a secret because of the arguments before it."""
    masked: dict[int, str] = {}
    commands: set[str] = set()
    for index, item in enumerate(items):
        if type(item) is not str:
            continue
        if not item.startswith("-"):
            commands.add(item.rsplit("/", 1)[-1])
            continue
        if item.startswith("-p") and len(item) > 2 and not commands.isdisjoint(_ATTACHED):
            masked[index] = f"-p{MASK}"
        following = items[index + 1] if index + 1 < len(items) else None
        if type(following) is str:
            value = _argument(item, following, commands)
            if value != following:
                masked[index + 1] = value
    return masked


def _argument(flag: str, value: str, commands: set[str]) -> str:
    if flag in ("-u", "--user", "-U", "--proxy-user") and not commands.isdisjoint(_WITH_USER):
        user, mark, secret = value.partition("%" if "smbclient" in commands else ":")
        return f"{user}{mark}{MASK}" if secret else value
    # A flag with a mask in it, or a `=`, has its value with it.
    named = judge(flag.lstrip("-")) if len(flag) > 2 and "=" not in flag and MASK not in flag else Verdict.CLEAN
    if named < Verdict.WEAK and commands.isdisjoint(_SHORT_FLAGS.get(flag, ())):
        return value
    if _IS_FLAG.fullmatch(value) or not reads_as_secret(value, "", max(named, Verdict.TOKEN), Style.EQUALS):
        return value
    return MASK
