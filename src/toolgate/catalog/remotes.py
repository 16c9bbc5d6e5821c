"""Where a Git command connects to: the URLs that the repository's own configuration and the command line give.

Nothing is asked of Git. Settings that would lead elsewhere (`insteadOf`, proxies) are refused before anything runs, and
nobody's other configuration counts in the sandbox, so these are the effective ones.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from toolgate.guards.argv import Parsed
from toolgate.guards.repository import Repository

CONNECTING = frozenset("clone fetch ls-remote pull push".split())
OWN_ALONE = {"fetch.recurseSubmodules": "false", "push.recurseSubmodules": "no", "submodule.recurse": "false"}
"""Settings that keep a command to its own repository: a submodule's configuration may lead anywhere."""
_TAKES_VALUE = frozenset("--depth -j --jobs -C -b --branch -o --origin --shallow-since --shallow-exclude".split())
_HEAD = re.compile(r"ref: refs/heads/(.+)\n?\Z")

Settings = Mapping[str, Sequence[str]]
"""Each key with all its values, as the configuration has them."""


def urls_of(parsed: Parsed, configured: Settings, repository: Repository | None) -> tuple[str, ...]:
    """Return every URL that a command connects to, as it is configured; none for one that does not connect."""
    words = list(parsed.argv[1:])
    name = next(iter(parsed.subcommands or [word for word in words if word in CONNECTING]), "")
    if name not in CONNECTING or name not in words:
        return ()
    given = _given(words[words.index(name) + 1 :])
    if name == "clone":
        return tuple(given[:1])
    return tuple(dict.fromkeys(url for one in _remotes(name, words, given, configured, repository) for url in one))


def shown(url: str) -> str:
    """Return a URL without the name and password that may be in it: either can be a secret."""
    try:
        parts = urlsplit(url)
        _, at, host = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"***@{host}" if at else host).geturl().encode(errors="replace").decode()
    except ValueError:
        return "a URL that cannot be read"


def _given(words: Sequence[str]) -> list[str]:
    found = [word for before, word in zip(("", *words), words, strict=False) if before not in _TAKES_VALUE]
    return [word for word in found if not word.startswith("-")]


def _remotes(
    name: str, words: Sequence[str], given: Sequence[str], configured: Settings, repository: Repository | None
) -> list[Sequence[str]]:
    known = _known(configured)
    if name == "fetch" and "--all" in words:
        wanted = known
    elif given:
        group = [one for text in configured.get(f"remotes.{given[0]}", ()) for one in text.split()]
        wanted = group if name == "fetch" and group else [given[0]]
    else:
        default = _default(name, configured, repository)
        wanted = [default] if default is not None else known
    return [_urls(name, one, configured) for one in wanted]


def _known(configured: Settings) -> list[str]:
    found = (re.match(r"remote\.(.+)\.(?:push)?url\Z", key, re.DOTALL) for key in configured)
    return list(dict.fromkeys(match[1] for match in found if match))


def _default(name: str, configured: Settings, repository: Repository | None) -> str | None:
    """Return the remote that Git takes where none is named; None where that is not settled."""
    branch = _branch(repository)
    keys = [f"branch.{branch}.pushremote", "remote.pushdefault"] if name == "push" else []
    for key in (*keys, f"branch.{branch}.remote"):
        if configured.get(key):
            return configured[key][-1]
    return "origin" if "origin" in _known(configured) else None


def _branch(repository: Repository | None) -> str:
    if repository is None:
        return ""
    with open(os.path.join(repository.folder, "HEAD"), encoding="utf-8", errors="surrogateescape") as file:
        found = _HEAD.match(file.read(4096))
    return found[1] if found else ""


def _urls(name: str, remote: str, configured: Settings) -> Sequence[str]:
    """Return where a remote leads: a push goes to all of its URLs, anything else to the first."""
    own = configured.get(f"remote.{remote}.url", ())
    if name == "push":
        return configured.get(f"remote.{remote}.pushurl") or own or [remote]
    return own[:1] or [remote]
