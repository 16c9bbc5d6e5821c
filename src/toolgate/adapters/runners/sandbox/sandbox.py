"""One sandbox for a process: which backend confines, as whom, and whether it holds. Never a silent fallback."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence

from toolgate.adapters.runners.sandbox.backend import TEST_S, Backend, Files, OnOutput, User, sandbox_user
from toolgate.adapters.runners.sandbox.bubblewrap import Bubblewrap
from toolgate.adapters.runners.sandbox.landlock import Landlock, Unconfined, has_namespaces
from toolgate.adapters.runners.sandbox.layout import within
from toolgate.adapters.runners.sandbox.overlay import Overlay
from toolgate.adapters.runners.sandbox.planted import Planted
from toolgate.adapters.runners.sandbox.probes import ProbeReport, probe, probe_in
from toolgate.errors import SandboxError
from toolgate.guards.edges import Edges
from toolgate.guards.hidden import hidden_in
from toolgate.ports.confinement import MEBIBYTE, Confined, Finished

AUTO = ("bubblewrap", "landlock")
"""What `auto` tries, best first. `none` is never among them."""


_WRITES = "echo x > changed; rm removed; rm -r emptied; mkdir emptied; echo y > emptied/new"
_WRITTEN = {"changed": "file", "removed": "gone", "emptied": "folder", "emptied/new": "file"}
"""What the test of an overlay does, and what must be found of it."""
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
        overlay: Overlay | None = None,
    ) -> Finished:
        """Run a program; SandboxError where no backend that holds can be used, or the system lets none be made."""
        chosen = self.choose(backend)
        self._must_keep_steering(chosen, confined)
        try:
            if overlay is not None and isinstance(chosen, Bubblewrap):
                return chosen.run(confined, stop=stop, on_output=on_output, overlay=overlay)
            return chosen.run(confined, stop=stop, on_output=on_output)
        except OSError as error:
            text = f"The sandbox could not be set up: {error.strerror or error}."
            raise SandboxError(text, may_have_run=error.errno != errno.E2BIG) from error

    def overlay(self, roots: Sequence[str], *, backend: str = "auto", size: int) -> Overlay:
        """Begin a layer over folders for programs to run over; SandboxError where the backend knows none."""
        chosen = self.choose(backend)
        if not isinstance(chosen, Bubblewrap):
            raise SandboxError(
                "Nothing ran: the policy wants commands that write to run in an overlay, which needs bubblewrap; the "
                f"sandbox here is `{chosen.name}`. Install it (on Debian: apt-get install bubblewrap), or write "
                "`overlay: false` under `commands:` in the policy."
            )
        try:
            return chosen.overlay(roots, size)
        except OSError as error:
            text = f"The overlay could not be set up, so nothing ran: {error.strerror or error}."
            raise SandboxError(text) from error

    def overlay_problem(self, workspace: str | None = None) -> str | None:
        """Return why no overlay can be used here, or over a workspace, by making them; None where they can."""
        with tempfile.TemporaryDirectory(dir=self._files.path) as folder:
            for name in ("changed", "removed", "emptied/inner"):
                path = os.path.join(folder, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="ascii"):
                    pass
            for path in (folder, os.path.join(folder, "emptied"), os.path.join(folder, "changed")):
                os.chmod(path, 0o777)
            confined = Confined(argv=("/bin/sh", "-c", _WRITES), cwd=folder, writable=(folder,), timeout_s=TEST_S)
            try:
                if workspace is not None:
                    with self.overlay((workspace,), size=MEBIBYTE) as overlay:
                        overlay.wait()
                with self.overlay((folder,), size=MEBIBYTE) as overlay:
                    finished = self.run(confined, overlay=overlay)
                    written, _ = overlay.collect()
            except SandboxError as error:
                return str(error)
            found = {entry.path.decode(): entry for entry in written}
            is_seen = {name: entry.kind for name, entry in found.items()} == _WRITTEN and found["emptied"].is_whole
            is_kept = sorted(os.listdir(folder)) == ["changed", "emptied", "removed"]
        if finished.exit_code == 0 and is_seen and is_kept:
            return None
        said = finished.stderr.decode(errors="replace").strip()[-200:]
        return f"what a test wrote in an overlay was not found as it was written ({said or finished.exit_code})"

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
                "user namespaces landlock cannot keep their modes and times. Stop the gate, move a database away with "
                f"`toolgate db move`, any other with `mv {found[0]} PLACE`, and name its new place, such as with "
                "`--policy`; or install bubblewrap."
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
