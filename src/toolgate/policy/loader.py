"""From files to a policy: find them, read them strictly, follow their includes, and name everything that is wrong."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from toolgate.errors import PolicyError, PolicyProblem, UsageError
from toolgate.guards.state import policy_folder
from toolgate.kernel.pin import PinBook
from toolgate.kernel.policy import Policy
from toolgate.policy import strict_yaml
from toolgate.policy.compile import FilePolicy, compile_policy
from toolgate.policy.document import RANKS, Document, document_of
from toolgate.policy.examples import check_examples
from toolgate.policy.projects import check_only_adds, find_projects
from toolgate.policy.values import Surroundings

PLACES = ("toolgate.yaml", "config/governance/tools.yaml")
"""Where a policy is looked for beneath a directory. Where both are there, both count. One that is kept for the
directory outside of it comes before them: what is put into the directory then counts for nothing."""

MAX_FILES = 64


def find_policy(directory: str | Path = ".") -> tuple[Path, ...]:
    """Return the policy files beneath a directory; PolicyError where there is none."""
    found = tuple(path for path in _places(directory) if path.is_file())
    if not found:
        where = "this folder" if str(directory) == "." else str(directory)
        raise PolicyError(
            f"There is no policy in {where}: `toolgate init` writes a first one; or write {' or '.join(PLACES)}, "
            "or name a file."
        )
    return found


def _places(directory: str | Path) -> tuple[Path, ...]:
    where = policy_folder(directory)
    return tuple(where / place for place in PLACES)


def load_policy(
    source: str | Path | None = None,
    *,
    workspace: str | Path | None = None,
    home: str | Path | None = None,
    projects: str | Path | None = None,
) -> FilePolicy:
    """Return the policy of a file, or of a directory's files (the current one by default).

    `workspace` is what `${WORKSPACE}` and relative paths mean, the current directory by default; `home` is
    `$HOME`. `projects` is a folder with the policies of projects that have one of their own. Raises PolicyError with
    every problem found.
    """
    return PolicySource(source, workspace=workspace, home=home, projects=projects).load()


def read_policy(
    text: str | bytes,
    *,
    name: str = "policy",
    workspace: str | Path | None = None,
    home: str | Path | None = None,
) -> FilePolicy:
    """Return the policy a text is; what it includes is found from the current directory."""
    surroundings = surroundings_of(workspace, home)
    return _Reading(surroundings).of_text(text, name)


def revise_policy(policy: Policy, texts: Mapping[str, str]) -> FilePolicy:
    """Return a policy with other texts in the place of some of its files; nothing is read from anywhere.

    Raises UsageError for a file the policy does not have, PolicyError with every problem of the texts.
    """
    known = policy.documents if isinstance(policy, FilePolicy) else ()
    surroundings = policy.surroundings if isinstance(policy, FilePolicy) else surroundings_of(None, None)
    names = [document.name for document in known] or list(texts)
    unknown = sorted(set(texts) - set(names))
    if unknown:
        raise UsageError(f"The policy has no file {unknown[0]!r}; its files are: {', '.join(names)}.")
    return _Reading(surroundings).of_texts(known, texts)


def surroundings_of(workspace: str | Path | None, home: str | Path | None) -> Surroundings:
    """Return what `$HOME` and `${WORKSPACE}` stand for."""
    at_home = str(home) if home is not None else os.path.expanduser("~")
    return Surroundings(os.path.abspath(at_home), os.path.abspath(workspace or os.getcwd()))


class PolicySource:
    """Where a policy comes from, and whether it changed there."""

    def __init__(
        self,
        source: str | Path | None = None,
        *,
        workspace: str | Path | None = None,
        home: str | Path | None = None,
        projects: str | Path | None = None,
    ) -> None:
        path = Path(source if source is not None else ".")
        self.paths = find_policy(path) if path.is_dir() else (path,)
        self._places = _places(path) if path.is_dir() else (path,)
        self.surroundings = surroundings_of(workspace, home)
        self.pins = PinBook()
        self._projects = None if projects is None else Path(projects)
        self._known: frozenset[str] = frozenset()
        self._seen: dict[str, _Stamp] = {}

    def load(self) -> FilePolicy:
        """Read everything anew; PolicyError where anything is wrong, and the files are then not looked at again
        before they change."""
        reading = _Reading(self.surroundings, self.pins)
        folder = () if self._projects is None else (str(self._projects),)  # which changes when a file comes or goes
        seen = {path: _stamp(path) for path in folder}
        try:
            base = reading.of_files(self.paths)
            return base if self._projects is None else replace(base, projects=self._of_projects(reading, seen))
        finally:
            self._seen = reading.stamps | seen

    def _of_projects(self, base: _Reading, seen: dict[str, _Stamp]) -> dict[str, FilePolicy]:
        """Return the policies of projects, each together with the one of all; what was read is added to `seen`.

        One that was there before and is gone is a mistake: without its file, more would be allowed than with it.
        """
        assert self._projects is not None
        found = find_projects(self._projects)
        gone = sorted(self._known - found.keys())
        if gone:
            raise PolicyError(
                f"The policy of project {gone[0]!r} is not in {self._projects} any more: put it back, or start again "
                "without it."
            )
        policies: dict[str, FilePolicy] = {}
        problems: list[PolicyProblem] = []
        for project, path in found.items():
            reading = base.further()
            try:
                policies[project] = reading.of_project(path)
            except PolicyError as error:
                if not error.problems:
                    raise
                problems += error.problems
            finally:
                seen |= reading.stamps
        if problems:
            raise PolicyError(problems)
        self._known = frozenset(found)
        return policies

    def named(self) -> tuple[str, ...]:
        """Return where the policy is, or would be, read from: absolute paths of files, and the folder of projects."""
        folder = () if self._projects is None else (self._projects,)
        return tuple(os.path.abspath(path) for path in (*self._places, *folder))

    def has_changed(self) -> bool:
        """Whether any file of the last reading is another one now."""
        return any(_stamp(path) != stamp for path, stamp in self._seen.items())


_Stamp = tuple[int, int, int] | None
"""By what a file is known to be the same; taken before it is read, so that what changes meanwhile is noticed."""


def _stamp(path: str) -> _Stamp:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_ino, status.st_mtime_ns, status.st_size)


class _Reading:
    """Reads files and what they include, each once."""

    def __init__(self, surroundings: Surroundings, pins: PinBook | None = None) -> None:
        self.surroundings = surroundings
        self.pins = pins
        self.files: list[str] = []
        self.stamps: dict[str, _Stamp] = {}
        self.documents: list[Document] = []
        self.problems: list[PolicyProblem] = []

    def of_files(self, paths: Iterable[Path]) -> FilePolicy:
        for path in paths:
            self._file(path, None)
        return self._compile()

    def further(self) -> _Reading:
        """Return a reading that goes on from here."""
        other = _Reading(self.surroundings, self.pins)
        other.files, other.documents = [*self.files], [*self.documents]
        return other

    def of_project(self, path: Path) -> FilePolicy:
        """Put a project's file, and what it includes, together with what was read before."""
        before = len(self.documents)
        self._file(path, None)
        self.problems += check_only_adds(self.documents[before:])
        return self._compile(before)

    def of_text(self, text: str | bytes, name: str) -> FilePolicy:
        self._take(text, name, Path("."))
        return self._compile()

    def of_texts(self, known: Iterable[Document], texts: Mapping[str, str]) -> FilePolicy:
        """Put known documents and new texts together; a text may include what its file did, which is known already."""
        left = dict(texts)
        for document in known:
            if document.name in left:
                self._revised(left.pop(document.name), document.name, frozenset(document.includes))
            else:
                self.documents.append(document)
        for name, text in left.items():
            self._revised(text, name, frozenset())
        return self._compile()

    def _revised(self, text: str, name: str, included: frozenset[str]) -> None:
        self.files.append(name)
        found = self._document(text, name)
        if found is None:
            return
        document, tree = found
        for number, other in enumerate(document.includes):
            if other not in included:
                place = tree.place(("include", number))
                message = f"{other} is not part of the policy in force; a trial reads no other files"
                self.problems.append(PolicyProblem(name, place.line, place.column, f"include.{number}", message))
        self.documents.append(document)

    def _document(self, text: str | bytes, name: str) -> tuple[Document, strict_yaml.Tree] | None:
        """Return the document a text is, and where everything stands in it; None, and problems, where it is none."""
        try:
            tree = strict_yaml.read(text, name)
        except PolicyError as error:
            self.problems += error.problems
            return None
        document, problems = document_of(tree, self.surroundings)
        self.problems += problems
        if document is None:
            return None
        return replace(document, text=text if isinstance(text, str) else text.decode()), tree

    def _compile(self, before: int = 0) -> FilePolicy:
        """Return the policy; the examples of what was read `before` were checked by themselves."""
        self._check_commands()
        if not self.problems:
            policy = compile_policy(self.documents, self.surroundings, self.pins)
            self.problems += check_examples(policy, self.documents[before:])
            if not self.problems:
                return policy
            policy.close()
        order = {name: number for number, name in enumerate(self.files)}
        raise PolicyError(
            sorted(dict.fromkeys(self.problems), key=lambda one: (order.get(one.file, 0), one.line, one.column))
        )

    def _file(self, path: Path, included: tuple[Document, int, strict_yaml.Tree] | None) -> None:
        named = os.path.abspath(path)  # not where a link leads: that it leads elsewhere is a change, too
        self.stamps[named] = _stamp(named)
        at = os.path.realpath(path)
        if at in self.files:
            return
        self.files.append(at)
        try:
            if len(self.files) > MAX_FILES:
                raise OSError(f"a policy has at most {MAX_FILES} files")
            with open(path, "rb") as file:
                text = file.read(strict_yaml.MAX_BYTES + 1)
        except OSError as error:
            self._unreadable(path, error, included)
            return
        self._take(text, str(path), path.parent, included)

    def _unreadable(self, path: Path, error: OSError, included: tuple[Document, int, strict_yaml.Tree] | None) -> None:
        why = error.strerror or str(error)
        if included is None:
            raise PolicyError(f"The policy {path} cannot be read: {why}. Name a file that is there.")
        document, number, tree = included
        place = tree.place(("include", number))
        message = f"{path} cannot be read: {why}"
        self.problems.append(PolicyProblem(document.name, place.line, place.column, f"include.{number}", message))

    def _take(
        self,
        text: str | bytes,
        name: str,
        directory: Path,
        included: tuple[Document, int, strict_yaml.Tree] | None = None,
    ) -> None:
        found = self._document(text, name)
        if found is None:
            return
        document, tree = found
        if included is not None and RANKS.index(document.layer) < RANKS.index(included[0].layer):
            parent, number, around = included
            place = around.place(("include", number))
            message = f"{name} is of layer `{document.layer}`, below `{parent.layer}`; a file includes only higher ones"
            self.problems.append(PolicyProblem(parent.name, place.line, place.column, f"include.{number}", message))
        self.documents.append(document)
        for number, other in enumerate(document.includes):
            self._file(directory / other, (document, number, tree))

    def _check_commands(self) -> None:
        owners: dict[str, str] = {}
        for document in self.documents:
            for name in document.commands:
                if owners.setdefault(name, document.name) != document.name:
                    message = f"command `{name}` already has a grammar in {owners[name]}; keep one"
                    self.problems.append(PolicyProblem(document.name, 1, 1, f"commands.{name}", message))
