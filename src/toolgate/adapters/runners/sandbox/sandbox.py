"""One sandbox for a process: which backend confines, as whom, and whether it holds. Never a silent fallback."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence

from toolgate.adapters.runners.sandbox.backend import Backend, Files, OnOutput, User, sandbox_user
from toolgate.adapters.runners.sandbox.bubblewrap import Bubblewrap
from toolgate.adapters.runners.sandbox.landlock import Landlock, Unconfined, has_namespaces
from toolgate.adapters.runners.sandbox.layout import within
from toolgate.adapters.runners.sandbox.planted import Planted
from toolgate.adapters.runners.sandbox.probes import ProbeReport, probe, probe_in
from toolgate.errors import SandboxError
from toolgate.guards.edges import Edges
from toolgate.guards.hidden import hidden_in
from toolgate.ports.confinement import Confined, Finished

AUTO = ("bubblewrap", "landlock")
"""What `auto` tries, best first. `none` is never among them."""


_REPORTS: dict[tuple[str, User], ProbeReport] = {}
"""How backends did in this process: the same user on the same machine is tested once, and each workspace in short."""


class Sandbox:
    """Confines programs. The first run tests the backend with escape probes; one that lets any out is not used.

    edges: what the policy says, where there is one: its workspace is readable and its secrets are hidden.
    uid: who confined programs run as where this process is root. on_tested: told each report.
    """

    def __init__(
        self,
        edges: Callable[[], Edges] | None = None,
        *,
        uid: int | None = None,
        on_tested: Callable[[ProbeReport], None] | None = None,
    ) -> None:
        self._edges = edges
        self._files = Files()
        self._uid = uid
        self._on_tested = on_tested
        self._lock = threading.Lock()
        self._reports: dict[str, ProbeReport] = {}
        self._backends: dict[str, Backend] = {}

    def readable(self) -> tuple[str, ...]:
        """Return the roots that sandboxed callables may read."""
        return () if self._edges is None else tuple(root.path for root in self._edges().workspace.roots)

    def hidden(self) -> tuple[str, ...]:
        """Return what is hidden from everything that is confined."""
        return () if self._edges is None else hidden_in(self._edges())

    @contextlib.contextmanager
    def watching(self, writable: Sequence[str]) -> Iterator[Planted | None]:
        """Keep a run that may write there on record until it ends, with what steers programs there."""
        if self._edges is None or not writable:
            yield None
            return
        planted = Planted(self._files.path, self._edges(), writable)
        planted.begin()
        try:
            yield planted
        finally:
            planted.end()

    @contextlib.contextmanager
    def scratch(self, backend: str) -> Iterator[str | None]:
        """Give a directory that can be the `/tmp` of several runs; None where the backend has no such thing."""
        chosen = self.choose(backend)
        if chosen.name != "bubblewrap":
            yield None
            return
        place = tempfile.mkdtemp(dir=self._files.path)
        try:
            if os.geteuid() == 0:
                os.chown(place, *chosen.user)
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def run(
        self,
        confined: Confined,
        *,
        backend: str = "auto",
        stop: int | None = None,
        on_output: OnOutput | None = None,
    ) -> Finished:
        """Run a program; SandboxError where no backend that holds can be used, or the system lets none be made."""
        chosen = self.choose(backend)
        self._must_keep_steering(chosen, confined)
        try:
            return chosen.run(confined, stop=stop, on_output=on_output)
        except OSError as error:
            text = f"The sandbox could not be set up: {error.strerror or error}."
            raise SandboxError(text, may_have_run=error.errno != errno.E2BIG) from error

    def _must_keep_steering(self, backend: Backend, confined: Confined) -> None:
        """Refuse to let a run write where this gate's own files lie, if nothing keeps their modes and times."""
        if self._edges is None or backend.name != "landlock" or has_namespaces(backend.user):
            return
        edges = self._edges()
        names = {os.path.realpath(name) for name in (*edges.policy_files, *edges.private_files)}
        found = sorted(n for n in names if os.path.exists(n) and any(within(n, root) for root in confined.writable))
        if found:
            raise SandboxError(
                f"Nothing ran: the command may write where this gate's own files lie ({', '.join(found)}), and without "
                "user namespaces landlock cannot keep their modes and times. Stop the gate, move each away with "
                f"`mv {found[0]} PLACE`, and name the new place with `--policy` or `--database`; or install bubblewrap."
            )

    def choose(self, name: str = "auto") -> Backend:
        """Return the backend of this name, tested; for `auto` the best that holds."""
        with self._lock:
            names = AUTO if name == "auto" else (name,)
            for candidate in names:
                report = self._tested(candidate)
                if report.holds:
                    return self._backends[candidate]
                if report.is_unfinished:
                    raise SandboxError(f"The sandbox is not tested yet, so nothing ran. {candidate}: {report.summary}.")
        problems = "; ".join(f"{candidate}: {self._reports[candidate].summary}" for candidate in names)
        raise SandboxError(
            f"No sandbox can be used here, so nothing ran. {problems}. Run `toolgate doctor`, or, to run without one, "
            "say `sandbox: none` in the policy."
        )

    def report(self, name: str) -> ProbeReport:
        """Return how a backend did in its test; tests it where that has not happened yet."""
        with self._lock:
            return self._tested(name)

    def _tested(self, name: str) -> ProbeReport:
        if name not in self._reports:
            workspace = None if self._edges is None else self._edges().workspace.path
            user = sandbox_user(workspace, self._uid)
            backend = _make(name, user, self._files)
            self._backends[name] = backend
            report = _REPORTS.get((name, user)) or probe(backend, self._files.path)
            if not report.is_unfinished:
                _REPORTS[name, user] = report
            if report.holds and self.readable():
                here = probe_in(backend, self._files.path, self.readable())
                report = report if here.holds else here
            if self._on_tested is not None:
                self._on_tested(report)
            if report.is_unfinished:
                return report
            self._reports[name] = report
        return self._reports[name]

    def reports(self) -> Sequence[ProbeReport]:
        """Return the reports there are."""
        return tuple(self._reports.values())

    def close(self) -> None:
        self._files.close()


def _make(name: str, user: User, files: Files) -> Backend:
    kinds: dict[str, Callable[..., Backend]] = {
        "bubblewrap": Bubblewrap,
        "landlock": Landlock,
        "none": Unconfined,
    }
    if name not in kinds:
        raise SandboxError(f"There is no sandbox backend {name!r}; use one of: {', '.join(kinds)}.")
    return kinds[name](user, files)
