"""Files that run later, outside the sandbox: which they are, and which of them a command changed.

A hook, a task of an editor, a build file or a job of a CI system runs as whoever comes next: a command that may only
write in the workspace reaches further through one of them. The list is of names that programs look for by themselves;
a source file that somebody imports on purpose is not among them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence

from toolgate.errors import SandboxError

MAX_NAMES = 300_000
MAX_LINKS = 40
SHOWN = 5
"""How many are named in one sentence."""
FOLDERS = frozenset(
    ".github .gitlab .circleci .buildkite .woodpecker .forgejo .gitea .husky .githooks .vscode .idea .zed "
    ".devcontainer .claude .cursor .codex .gemini .windsurf .aider .continue .direnv .cargo .yarn .mvn "
    ".run .fleet .roo .clinerules .kiro .amazonq .junie .opencode .trae .bundle .hg".split()
)
"""Everything beneath a folder of one of these names."""
NAMES = frozenset(
    ".envrc .gitlab-ci.yml .gitlab-ci.yaml .travis.yml appveyor.yml .appveyor.yml azure-pipelines.yml "
    "bitbucket-pipelines.yml jenkinsfile .drone.yml .woodpecker.yml .cirrus.yml cloudbuild.yaml "
    ".pre-commit-config.yaml .pre-commit-hooks.yaml lefthook.yml lefthook.yaml .lefthook.yml .overcommit.yml "
    ".gitmodules .gitattributes .gitconfig .mcp.json claude.md agents.md gemini.md .cursorrules .windsurfrules "
    "conftest.py sitecustomize.py usercustomize.py setup.py setup.cfg pyproject.toml tox.ini pytest.ini noxfile.py "
    "tasks.py fabfile.py dodo.py package.json .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs pnpmfile.js gruntfile.js "
    "gulpfile.js makefile gnumakefile justfile .justfile taskfile.yml taskfile.yaml rakefile gemfile vagrantfile "
    "cmakelists.txt configure meson.build build.rs build.gradle build.gradle.kts settings.gradle settings.gradle.kts "
    "gradlew mvnw pom.xml build.xml dockerfile containerfile docker-compose.yml docker-compose.yaml compose.yml "
    "compose.yaml procfile .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zprofile "
    ".zshenv .zlogin .inputrc .vimrc .exrc .nvimrc .emacs .dir-locals.el .gdbinit .lldbinit .pythonrc .pdbrc "
    ".tool-versions mise.toml .mise.toml .autoenv .env.fish .pytest.ini pytest.toml .pytest.toml tox.toml .coveragerc "
    ".pylintrc pylintrc mypy.ini .mypy.ini .flake8 hatch_build.py hatch.toml uv.toml .eslintrc .eslintrc.json "
    ".eslintrc.yml .eslintrc.yaml .prettierrc .prettierrc.json .prettierrc.yml .prettierrc.yaml .prettierrc.toml "
    ".babelrc .babelrc.json babel.config.json .mocharc.json .mocharc.jsonc .mocharc.yml .mocharc.yaml .nycrc "
    ".nycrc.json .stylelintrc .stylelintrc.json .lintstagedrc .lintstagedrc.json .huskyrc .releaserc .bunfig.toml "
    "bunfig.toml deno.json deno.jsonc cargo.toml rust-toolchain rust-toolchain.toml magefile.go sconstruct sconscript "
    "wscript cmakepresets.json cmakeuserpresets.json configure.ac module.bazel build.bazel workspace.bazel .bazelrc "
    "tiltfile earthfile shell.nix default.nix flake.nix build.sbt project.clj mix.exs package.swift .rspec .irbrc "
    ".pryrc .nvim.lua .lvimrc .screenrc .tmux.conf .clinerules .roorules directory.build.props directory.build.targets "
    "copilot-instructions.md opencode.json".split()
)
"""Files of these names, in any letter case."""
ENDINGS = (".pth", ".mk", ".service", ".code-workspace", ".nu", ".desktop")
CONFIGURATIONS = (".js", ".cjs", ".mjs", ".ts", ".cts", ".mts")
"""`jest.config.js` and the like are programs."""
INSTALLED = "node_modules"
"""What lies beneath it is installed code and runs when it is used, all of it: naming its files says nothing."""
Stamps = Mapping[str, tuple[int, ...]]


def runs_later(path: str) -> bool:
    """Whether something other than the command's own caller would run what lies at a path within a workspace."""
    if INSTALLED in path.split("/")[:-1]:  # in no other letter case: that is a folder like any other
        return False
    *folders, name = path.lower().strip("/").split("/")
    return not FOLDERS.isdisjoint(folders) or _is_named(name) or _steers_git(folders, name)


def _is_named(name: str) -> bool:
    stem, ending = os.path.splitext(name)
    is_configuration = ending in CONFIGURATIONS and stem.endswith((".config", "rc"))
    return name in NAMES or name in FOLDERS or ending in ENDINGS or is_configuration


def _steers_git(folders: Sequence[str], name: str) -> bool:
    """Whether it is a repository's configuration or one of its hooks; the samples Git puts beside them never run."""
    if ".git" not in folders:
        return False
    inner = folders[folders.index(".git") + 1 :]
    return name in ("config", "config.worktree") or ("hooks" in inner and not name.endswith(".sample"))


def stamps(roots: Sequence[str], *, may_have_run: bool = False) -> Stamps:
    """Return who each file beneath the roots that runs later is: not what it holds, but what every change alters.

    SandboxError where there are too many files to look for them; may_have_run: the command has run by then.
    """
    return {path: stamp for root in roots for path in _files(root, may_have_run) if (stamp := _stamp(path))}


def changed(before: Stamps, after: Stamps) -> tuple[str, ...]:
    """Return the files that were created, changed or deleted between two looks."""
    return tuple(sorted(path for path in {*before, *after} if before.get(path) != after.get(path)))


def told(paths: Sequence[str]) -> str:
    """Say in one sentence which files that run later a command changed."""
    some = ", ".join(paths[:SHOWN]) + (f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else "")
    count = "1 file that runs" if len(paths) == 1 else f"{len(paths)} files that run"
    return f"It changed {count} later: {some}."


def short(path: str, roots: Iterable[str]) -> str:
    """Return a path as seen from the root that it lies beneath."""
    home = next((root for root in roots if path.startswith(f"{root}/")), None)
    return path if home is None else path[len(home) + 1 :]


def led_to(root: str) -> Iterator[str]:
    """Yield where links beneath a root that run later lead, and every link on the way there."""
    for path in _files(root, may_have_run=True):
        yield from (found for found in _way(path) if found != path)


def _way(path: str) -> Iterator[str]:
    """Yield the links that are followed on the way to a file, and where they end; nothing more where they never do."""
    at, names, links = "/", path.split("/")[::-1], 0
    while names:
        name = names.pop()
        here = os.path.dirname(at) if name == ".." else os.path.join(at, name) if name not in ("", ".") else at
        if name in ("", ".", "..") or not os.path.islink(here):
            at = here
            continue
        yield here
        links += 1
        if links > MAX_LINKS:
            return
        target = os.readlink(here)
        at = "/" if target.startswith("/") else at
        names += target.split("/")[::-1]
    yield at


def _files(root: str, may_have_run: bool) -> Iterator[str]:
    """Yield what runs later beneath a root; a link of such a name also with what lies where it leads."""
    waiting, seen, entered = [(root, False)], 0, {os.path.realpath(root)}
    while waiting:
        folder, is_counted = waiting.pop()
        try:
            entries = os.scandir(folder)
        except OSError:
            continue  # what we cannot list, the sandbox's user cannot either
        with entries:
            for entry in entries:
                seen += 1
                counts = is_counted or runs_later(entry.path[len(root) + 1 :])
                if counts and not entry.is_dir(follow_symlinks=False):
                    yield entry.path
                real = entry.path if not entry.is_symlink() else os.path.realpath(entry.path) if counts else None
                if real is None or not _is_folder(entry) or entry.name == INSTALLED:
                    continue
                if real == entry.path or (real.startswith(f"{root}/") and real not in entered):
                    entered.add(real)
                    waiting.append((entry.path, counts))
        if seen > MAX_NAMES:
            raise SandboxError(
                f"{root} holds more than {MAX_NAMES} files, too many to find those that run later among them. "
                "Choose a smaller workspace.",
                may_have_run=may_have_run,
            )


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder or leads to one; a link that leads nowhere, or in a circle, is none."""
    return os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir()


def _stamp(path: str) -> tuple[int, ...]:
    """Return a file's identity; of a link also what it leads to. Nobody inside a sandbox can set the time of change."""
    try:
        own = os.lstat(path)
    except OSError:
        return ()
    found = (own.st_dev, own.st_ino, own.st_mode, own.st_size, own.st_mtime_ns, own.st_ctime_ns)
    if not stat.S_ISLNK(own.st_mode):
        return found
    try:
        target = os.stat(path)
    except OSError:
        return found
    return (*found, target.st_dev, target.st_ino, target.st_size, target.st_mtime_ns, target.st_ctime_ns)
