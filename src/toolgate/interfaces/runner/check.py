"""What a runner may do here, found out and said before it connects; what would make it unsafe is refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from toolgate.adapters.runners.sandbox import Sandbox
from toolgate.errors import PolicyError, UsageError
from toolgate.interfaces.runner.local import LocalGate, reachable
from toolgate.interfaces.runner.notices import Kind, Notice
from toolgate.interfaces.runner.state import StateFolder
from toolgate.kernel.policy import Stance, Word
from toolgate.kernel.tool import Placement, ToolDefinition
from toolgate.policy.loader import PLACES, find_policy
from toolgate.policy.profiles import PROFILES, render


def policy_path(workspace: Path, given: Path | None, profile: str | None, state: StateFolder) -> Path:
    """Return where the local policy is: named, a built-in profile, or the workspace's own. There is no default."""
    if given is not None and profile is not None:
        raise UsageError("Give --policy or --profile, not both.")
    if given is not None:
        if not given.exists():
            raise UsageError(f"There is no policy at {given}.")
        return given
    if profile is not None:
        return _written(profile, state)
    try:
        find_policy(workspace)
    except PolicyError:
        raise UsageError(
            f"There is no policy for {workspace}, so a server may do nothing here. Write one with `toolgate init "
            f"{workspace}` ({PLACES[0]}), name one with --policy, or take a built-in one with --profile "
            f"({', '.join(PROFILES)})."
        ) from None
    return workspace


def _written(profile: str, state: StateFolder) -> Path:
    folder = state.path / f"profile-{profile}"
    folder.mkdir(mode=0o700, exist_ok=True)
    for name, text in render(profile).items():  # type: ignore[arg-type]  # checked by the command line
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def check_reach(local: LocalGate, state: StateFolder, private: Iterable[Path]) -> None:
    """Refuse a set-up in which a server could change the policy or the journal, or read what is private."""
    gate, kept = local.gate, (state.path / "anything", state.journal, state.signals)
    for path in (*policy_files(local), *kept):
        if reachable(gate, path, "write"):
            raise UsageError(
                f"{path} lies where the tools of this runner may write, so a server could change it. Keep it outside "
                "the workspace (--state, --policy), or add it to `protected` in the policy."
            )
    for path in (*kept, *private):
        if reachable(gate, path, "read"):
            raise UsageError(
                f"{path} lies where the tools of this runner may read, so a server could see what is private. Keep it "
                "outside the workspace (--state, --token-file), or add it to `protected` in the policy."
            )


def policy_files(local: LocalGate) -> list[Path]:
    """Return the files the local policy was read from."""
    documents = getattr(local.gate.policy, "documents", ())
    return [Path(document.name).absolute() for document in documents]


def drop_unconfinable(local: LocalGate) -> tuple[list[str], str]:
    """Take away the tools that need a sandbox where none holds; returns them and what the sandbox is."""
    confined = [tool for tool in local.tools if tool.runs_in is Placement.SANDBOX]
    if not confined:
        return [], "not needed"
    sandbox = Sandbox(local.gate.policy.edges)  # type: ignore[attr-defined]  # a runner's policy is a file's
    try:
        reports = [sandbox.report(name) for name in ("bubblewrap", "landlock")]
    finally:
        sandbox.close()
    held = next((report for report in reports if report.holds), None)
    if held is not None:
        return [], f"{held.backend} holds"
    lost = [tool for tool in confined if _demands_sandbox(local, tool)]
    for tool in lost:
        local.tools.discard(tool.name)
    return [tool.name for tool in lost], "; ".join(f"{report.backend}: {report.summary}" for report in reports)


def _demands_sandbox(local: LocalGate, tool: ToolDefinition) -> bool:
    terms = local.gate.policy.stance(tool).sandbox
    return terms is None or terms.backend != "none"


def findings(local: LocalGate, state: StateFolder, workspace: Path, *, confirm: bool, trust: bool) -> Iterator[Notice]:
    """Say what a server may do here."""
    lost, sandbox = drop_unconfinable(local)
    policy = local.gate.policy
    files = ", ".join(str(path) for path in policy_files(local))
    yield _found(f"workspace {workspace}", workspace=str(workspace))
    yield _found(
        f"policy {files}, revision {policy.revision[:12]}; where no rule speaks: {policy.default}",
        policy=files,
        revision=policy.revision,
    )
    yield _found(f"sandbox: {sandbox}", sandbox=sandbox)
    if lost:
        yield _found(f"not offered, since no sandbox holds: {', '.join(lost)}", not_offered=lost)
    if not len(local.tools):
        raise UsageError("No tool is left to offer. Run `toolgate doctor`, or choose others with --only.")
    words = {tool.name: _word(policy.stance(tool), confirm=confirm) for tool in local.tools}
    yield _found(f"offers {_listed(words)}", offers=words)
    if any(word in ("ask", "by its arguments") for word in words.values()):
        yield _found(_who_answers(state, trust=trust))


def _who_answers(state: StateFolder, *, trust: bool) -> str:
    here = f"you are asked here, or with: toolgate inbox {state.journal}"
    return f"where the policy asks, a person's yes at the server counts; else {here}" if trust else f"to answer: {here}"


def _word(stance: Stance, *, confirm: bool) -> str:
    """What the policy says of a tool before it sees arguments."""
    said = {word for rule in stance.rules if isinstance(word := getattr(rule, "word", None), Word)}
    for word in (Word.DENY, Word.ASK):
        if word in said or (word is Word.ASK and confirm):
            return word.value
    return "allow" if said == {Word.ALLOW} else "by its arguments"


def _listed(words: dict[str, str]) -> str:
    by_word: dict[str, list[str]] = {}
    for name, word in words.items():
        by_word.setdefault(word, []).append(name)
    return "; ".join(f"{word}: {', '.join(names)}" for word, names in sorted(by_word.items()))


def _found(text: str, **data: str | Sequence[str] | dict[str, str]) -> Notice:
    return Notice(kind=Kind.CHECKED, text=text, data=dict(data))
