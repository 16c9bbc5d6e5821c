"""What Git gets in the sandbox: an identity, a neutral configuration, and files that do not look emptied.

A repository can name programs to run; none of them runs. Of the user's configuration Git is given the name and the
mail address, and nothing else. A protected file that is tracked is readable to Git while it is what the index has:
Git's own store holds that content anyway. One that was changed since stays hidden, and what would take it for emptied
is refused.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolgate.catalog.remotes import OWN_ALONE, urls_of
from toolgate.errors import ToolExecutionError
from toolgate.guards.argv import Parsed
from toolgate.guards.repository import Repository, is_unchanged, repository_of, tracked
from toolgate.guards.steering import is_bare
from toolgate.guards.words import ArgvRefused
from toolgate.ports.confinement import Confined

ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_ASKPASS": "true",
    "GIT_SSH_COMMAND": "false",
    "GIT_ALLOW_PROTOCOL": "https:ssh",
}
STEERING = ("config", "config.worktree", "commondir", "gitdir", "hooks", "info")
"""What in a repository names programs to run, or other places to look for them."""
SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "core.sshCommand": "false",
    "core.alternateRefsCommand": "",
    "credential.helper": "",
    "gpg.program": "false",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "log.showSignature": "false",
    "uploadpack.packObjectsHook": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "safe.directory": "*",
}
NEUTRAL = (
    (re.compile(r"filter\..+\.(clean|smudge|process)\Z", re.DOTALL), ""),
    (re.compile(r"filter\..+\.required\Z", re.DOTALL), "false"),
    (re.compile(r"diff\..+\.textconv\Z", re.DOTALL), "cat"),
    (re.compile(r"merge\..+\.driver\Z", re.DOTALL), "git merge-file %A %O %B"),
    (re.compile(r"(gpg\..+\.program|interactive\.difffilter|trailer\..+\.(command|cmd))\Z", re.DOTALL), "false"),
    (re.compile(r"submodule\..+\.update\Z", re.DOTALL), "checkout"),
)
"""Settings that a repository may have, and the value that takes their program's place."""
REFUSED_UNSEEN = re.compile(r"includeif\..+\.path\Z", re.DOTALL)
"""Settings that bring others under conditions which hold for the command alone, not for whoever reads them before."""
REFUSED_DIFF = re.compile(r"diff\.(external|.+\.command)\Z", re.DOTALL)
REFUSED_WRITING = re.compile(r"filter\..+\.(clean|smudge|process)\Z", re.DOTALL)
REFUSED_NETWORK = re.compile(
    r"(url\..+\.(insteadof|pushinsteadof)|(http|remote)(\..+)?\.proxy|http\..*|credential\..+|"
    r"remote\..+\.(vcs|uploadpack|receivepack)|core\.(sshcommand|gitproxy))\Z",
    re.DOTALL,
)
"""Settings that lead a connection elsewhere, or run a program for it."""
NEEDS_IDENTITY = frozenset({"commit", "cherry-pick", "revert"})
SEES_NO_FILES = frozenset(
    "log show shortlog reflog rev-parse rev-list ls-tree cat-file describe merge-base name-rev count-objects show-ref "
    "for-each-ref config version help remote branch tag fetch push check-ignore blame".split()
)
"""What does not compare the files with the index."""
MAKES_REPOSITORIES = (("init",), ("clone",), ("worktree",), ("submodule",))
TAKES_UNTRACKED = frozenset({"add", "clean", "stash"})
_ALL = re.compile(r"-[A-Za-z]*a|--all\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """The protected files of one run: still hidden; tracked and readable; tracked and changed; in no index."""

    hidden: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()


def environment(settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables that keep Git from running what a repository's configuration names."""
    found = dict(ENVIRONMENT)
    wanted = SETTINGS | dict(settings or {})
    found["GIT_CONFIG_COUNT"] = str(len(wanted))
    for index, (name, value) in enumerate(wanted.items()):
        found[f"GIT_CONFIG_KEY_{index}"] = name
        found[f"GIT_CONFIG_VALUE_{index}"] = value
    return found


def fitted(confined: Confined, parsed: Parsed, locked: Sequence[str]) -> Confined:
    """Return what runs Git: with its identity, its repository, and protected files as Git must see them."""
    roots = confined.given
    repository = repository_of(_start(confined.cwd, parsed), roots)
    files = sorted_out(confined.hidden, roots)
    _refuse_emptied(parsed, confined.cwd, files.changed)
    configured = configuration(parsed.executable, repository)
    settings = neutralised(configured, parsed)
    if parsed.network:
        settings |= OWN_ALONE
    identity = {} if not parsed.writes else identity_of(parsed, configured)
    own = locked_for(locked) if parsed.writes else confined.locked
    kept = (*own, *(files.readable if _leaves_files(parsed) else ()))
    outside = _outside(repository, roots)
    argv = _without_untracked(confined.argv, parsed, repository, files.untracked)
    return replace(
        confined,
        argv=argv,
        hidden=files.hidden,
        locked=(*kept, *(_steering(outside) if parsed.writes else ())),
        readable=confined.readable if parsed.writes else (*confined.readable, *outside),
        writable=(*confined.writable, *outside) if parsed.writes else confined.writable,
        environment=environment(settings) | identity | dict(parsed.environment),
        makes_repositories=parsed.subcommands[:1] in MAKES_REPOSITORIES,
    )


def _start(cwd: str, parsed: Parsed) -> str:
    """Return where Git looks for its repository: where it starts, moved by each `-C`."""
    words = iter(parsed.argv[1:])
    for word in words:
        if parsed.subcommands and word == parsed.subcommands[0]:
            break
        if word.startswith("-C"):
            cwd = os.path.normpath(os.path.join(cwd, word[2:] or next(words, ".")))
    return cwd


def _outside(repository: Repository | None, roots: Sequence[str]) -> tuple[str, ...]:
    """Return the folder of a worktree's repository that lies outside the workspace."""
    if repository is None or any(_within(repository.common, root) for root in roots):
        return ()
    return (
        (repository.common,)
        if _within(repository.folder, repository.common)
        else (
            repository.common,
            repository.folder,
        )
    )


def _within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _steering(folders: Sequence[str]) -> tuple[str, ...]:
    found = [os.path.join(folder, name) for folder in folders for name in STEERING]
    return tuple(path for path in found if os.path.exists(path))


def locked_for(locked: Sequence[str]) -> tuple[str, ...]:
    """Return what Git cannot change when it writes: its own files it can, but not what they make it run."""
    found: list[str] = []
    for path in locked:
        is_folder = os.path.basename(path) == ".git" and os.path.isdir(path)
        found += _steering([path]) if is_folder or is_bare(path) else [path]
    return tuple(found)


def sorted_out(hidden: Sequence[str], roots: Sequence[str]) -> Protected:
    """Return protected paths by what the index of their repository says of them."""
    homes: dict[Repository, list[str]] = {}
    still: list[str] = []
    for path in hidden:
        home = repository_of(os.path.dirname(path), roots)
        if home is None:
            still.append(path)
        else:
            homes.setdefault(home, []).append(path)
    readable: list[str] = []
    changed: list[str] = []
    untracked: list[str] = []
    for home, paths in homes.items():
        entries = tracked(home, [os.path.relpath(path, home.top) for path in paths])
        known = {os.path.join(home.top, name): entry for name, entry in entries.items()}
        for path in paths:
            inside = {name: entry for name, entry in known.items() if _within(name, path) and entry.is_watched}
            if not inside:
                still.append(path)
                untracked += [] if path in known else [path]
            elif all(is_unchanged(name, entry) for name, entry in inside.items() if os.path.lexists(name)):
                readable += [name for name in inside if os.path.lexists(name)]
                others = [name for name in _files(path) if name not in inside]
                still += others
                untracked += others
            else:
                still.append(path)
                changed.append(path)
    return Protected(
        hidden=tuple(sorted(still, key=len)),
        readable=tuple(readable),
        changed=tuple(changed),
        untracked=tuple(untracked),
    )


def _files(path: str) -> list[str]:
    """Return a file, or the files beneath a folder."""
    if not os.path.isdir(path):
        return [path]
    return [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]


def _leaves_files(parsed: Parsed) -> bool:
    """Whether a command that writes has no need to change tracked files: it gets the protected ones read-only."""
    return parsed.writes and parsed.subcommands[:1] in (("add",), ("commit",), ("apply",), ("clean",), ("branch",))


def _refuse_emptied(parsed: Parsed, cwd: str, changed: Sequence[str]) -> None:
    """Refuse what would take a hidden file for an emptied one."""
    name = parsed.subcommands[0] if parsed.subcommands else ""
    words = parsed.argv[1:]
    if not changed or not (name or parsed.unknown) or name in SEES_NO_FILES:
        return
    if name == "status" and not any(word.startswith("-v") for word in words):
        return
    if parsed.subcommands[:2] in (("stash", "list"), ("stash", "drop")):
        return
    if name in ("add", "commit") and _spares(parsed, cwd, changed):
        return
    shown = ", ".join(f"'{os.path.basename(path)}'" for path in changed[:5])
    said = " ".join(("git", *parsed.subcommands[:1]))
    raise ArgvRefused(
        "hidden_files",
        f"'{said}' is refused: the tracked {shown} differs from the index and is protected, so Git would take it "
        "for emptied. Name other paths (`git add src`), commit or restore that file yourself, or take it out of the "
        "repository with `git rm --cached`.",
    )


def _spares(parsed: Parsed, cwd: str, changed: Sequence[str]) -> bool:
    """Whether `git add` or `git commit` is told which files to take, and none of these is among them."""
    start = _start(cwd, parsed)
    uses = [use for use in parsed.paths if not use.argument.startswith("-")]
    named = [os.path.normpath(os.path.join(start, use.path)) for use in uses]
    is_aimed = bool(named) if parsed.subcommands[0] == "add" else not any(map(_ALL.match, parsed.argv[1:]))
    return is_aimed and not any(_within(path, place) for path in changed for place in named)


def _without_untracked(
    argv: tuple[str, ...], parsed: Parsed, repository: Repository | None, untracked: Sequence[str]
) -> tuple[str, ...]:
    """Return a line that leaves protected files which Git does not know out of what it adds, stashes or removes."""
    name = parsed.subcommands[0] if parsed.subcommands else ""
    second = parsed.subcommands[1] if len(parsed.subcommands) > 1 else "push"
    if repository is None or name not in TAKES_UNTRACKED or (name == "stash" and second != "push"):
        return argv
    own = [os.path.relpath(path, repository.top) for path in untracked if _within(path, repository.top)]
    if not own or (name == "stash" and not _stashes_untracked(argv)):
        return argv
    return (*argv, *(() if "--" in argv else ("--",)), *(f":(top,exclude,literal){path}" for path in own))


def _stashes_untracked(argv: Sequence[str]) -> bool:
    return any(word == "--include-untracked" or re.match(r"-[a-z]*u", word) for word in argv)


def remote_urls(parsed: Parsed, start: str, roots: Sequence[str]) -> tuple[str, ...]:
    """Return where a Git command with a network connects to, by the command line and the repository."""
    repository = repository_of(_start(start, parsed), roots)
    found: dict[str, list[str]] = {}
    for key, value in _configured(parsed.executable, repository):
        found.setdefault(key, []).append(value)
    return urls_of(parsed, found, repository)


def configuration(executable: str, repository: Repository | None) -> dict[str, str]:
    """Return what the repository's own files set, keys in lower case. Nothing of it is run: Git only reads it out."""
    return dict(_configured(executable, repository))


def _configured(executable: str, repository: Repository | None) -> list[tuple[str, str]]:
    if repository is None:
        return []
    found: list[tuple[str, str]] = []
    folders = dict.fromkeys((repository.common, repository.folder))
    for path in (os.path.join(folder, name) for folder in folders for name in ("config", "config.worktree")):
        if os.path.isfile(path):
            found += _read(executable, "--file", path, "--includes", "--list")
    return found


def _read(executable: str, *arguments: str) -> list[tuple[str, str]]:
    names = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
    given = {name: os.environ[name] for name in names if name in os.environ}
    line = [executable, "config", "--null", *arguments]
    try:
        done = subprocess.run(
            line,
            env=given | {"GIT_DIR": "/dev/null", "PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolExecutionError(f"Git's configuration cannot be read: {error}.") from None
    if done.returncode not in (0, 1):  # 1: nothing was found
        said = done.stderr.decode(errors="replace").strip()[:300]
        raise ToolExecutionError(f"Git's configuration cannot be read: {said}.")
    pairs = [item.partition("\n") for item in done.stdout.decode(errors="surrogateescape").split("\0") if item]
    return [(_key(key), value) for key, _, value in pairs]


def _key(name: str) -> str:
    """Return a key as Git compares it: what stands in its middle keeps its letters."""
    section, _, rest = name.partition(".")
    middle, dot, last = rest.rpartition(".")
    return f"{section.lower()}.{middle}{dot}{last.lower()}"


def neutralised(configured: Mapping[str, str], parsed: Parsed) -> dict[str, str]:
    """Return settings that take the place of the programs a repository names; ArgvRefused where none can."""
    found: dict[str, str] = {}
    is_unknown = bool(parsed.unknown)  # it may be any subcommand
    fills_files = parsed.writes and (is_unknown or not SEES_NO_FILES.issuperset(parsed.subcommands[:1]))
    refused = [REFUSED_DIFF] if is_unknown or parsed.subcommands[:1] in (("diff",), ("stash",)) else []
    refused += [REFUSED_WRITING] if fills_files else []
    refused += [REFUSED_NETWORK] if parsed.network else []
    refused += [REFUSED_UNSEEN] if refused else []
    for key in configured:
        if any(pattern.match(key) for pattern in refused):
            raise ArgvRefused(
                "repository_setting",
                f"'git {' '.join(parsed.subcommands)}' is refused: the repository's configuration sets '{key}', which "
                f"runs a program or leads elsewhere. Take it out with `git config --unset-all {key}`, or run this "
                "command yourself.",
            )
        neutral = next((value for pattern, value in NEUTRAL if pattern.match(key)), None)
        if neutral is not None:
            found[key] = neutral
    return found


def identity_of(parsed: Parsed, configured: Mapping[str, str]) -> dict[str, str]:
    """Return who commits, as this process or the user's configuration says; nothing else of that is handed on."""
    known: Mapping[str, str] = configured
    if not {"user.name", "user.email"} <= configured.keys():
        known = dict(_read(parsed.executable, "--get-regexp", r"^user\.(name|email)$")) | dict(configured)
    found: dict[str, str] = {}
    for role in ("AUTHOR", "COMMITTER"):
        for what in ("NAME", "EMAIL"):
            variable = f"GIT_{role}_{what}"
            value = os.environ.get(variable) or known.get(f"user.{what.lower()}")
            if value:
                found[variable] = value
    missing = [name for name in _IDENTITY if name not in found | dict(parsed.environment)]
    if missing and parsed.subcommands[:1] and parsed.subcommands[0] in NEEDS_IDENTITY:
        raise ToolExecutionError(
            f"'git {parsed.subcommands[0]}' needs a name and a mail address, and your Git configuration has none. Run "
            '`git config --global user.name "Your Name"` and `git config --global user.email you@example.com`.'
        )
    return found


_IDENTITY = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")


def parse_status(text: str) -> dict[str, Any]:
    """Return branch and files of `git status --porcelain=v2 --branch -z`."""
    found: dict[str, Any] = {"branch": None, "commit": None, "upstream": None, "ahead": 0, "behind": 0, "files": []}
    records = iter(text.split("\0"))
    for record in records:
        kind, _, rest = record.partition(" ")
        if kind == "#":
            _header(found, rest)
        elif kind in ("1", "2", "u"):
            fields = rest.split(" ", {"1": 7, "2": 8, "u": 9}[kind])
            entry = {"path": fields[-1], "index": fields[0][0], "worktree": fields[0][1]}
            if kind == "2":
                entry["from"] = next(records, "")
            found["files"].append(entry)
        elif kind in ("?", "!"):
            found["files"].append({"path": rest, "index": kind, "worktree": kind})
    return found | {"clean": not found["files"]}


def _header(found: dict[str, Any], text: str) -> None:
    name, _, value = text.partition(" ")
    if name == "branch.head":
        found["branch"] = None if value == "(detached)" else value
    elif name == "branch.oid":
        found["commit"] = None if value == "(initial)" else value
    elif name == "branch.upstream":
        found["upstream"] = value
    elif name == "branch.ab":
        ahead, _, behind = value.partition(" ")
        found["ahead"], found["behind"] = int(ahead), -int(behind)
