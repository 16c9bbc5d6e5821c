"""HumanLayer: `require_approval` around a function, with a backend in memory in place of its service."""

# mypy: ignore-errors

from datetime import UTC, datetime
from typing import Any

from benchmarks.gauntlet.sheet import Cell, absent, fill_in, judge, untried
from humanlayer import AgentBackend, FunctionCall, FunctionCallStatus, HumanLayer

RAN: list[Any] = []


class Functions:
    """Keeps function calls; `answers` are given one after the other when the library looks."""

    def __init__(self, *answers: bool) -> None:
        self.kept: dict[str, FunctionCall] = {}
        self.answers = list(answers)
        self.on_look: Any = None

    def add(self, item: FunctionCall) -> FunctionCall:
        self.kept[item.call_id] = item
        return item

    def get(self, call_id: str) -> FunctionCall:
        call = self.kept[call_id]
        if self.on_look is not None:
            self.on_look()
        if call.status is None:
            call.status = FunctionCallStatus(requested_at=datetime.now(UTC))
        call.status.approved = self.answers[0]
        call.status.responded_at = datetime.now(UTC)
        return call


class Backend(AgentBackend):
    """The library's own interface to wherever approvals are kept."""

    def __init__(self, *answers: bool) -> None:
        self.calls = Functions(*answers)

    def functions(self) -> Functions:
        return self.calls

    def contacts(self) -> Any:
        raise NotImplementedError


def layer(backend: Backend) -> HumanLayer:
    RAN.clear()
    return HumanLayer(backend=backend, sleep=lambda _seconds: None)


def pay(to: str, amount: int = 0, note: Any = None) -> str:
    """Pay somebody."""
    RAN.append((to, amount, dict(note) if note else None))
    return "paid"


def reject_while_relaxed() -> Cell:
    layer(backend := Backend(False)).require_approval().wrap(pay)(to="bob", amount=10)
    assert backend.calls.kept
    return judge(not RAN, "the rejected call did not run (it has no policy that could be relaxed)", f"it ran: {RAN}")


def changed_arguments() -> Cell:
    note = {"amount": 10}
    backend = Backend(True)
    backend.calls.on_look = lambda: note.update(amount=10_000)
    layer(backend).require_approval().wrap(pay)(to="bob", amount=10, note=note)
    said = f"the caller's own object changed while the approver looked at it; it ran: {RAN}"
    return judge(RAN == [("bob", 10, {"amount": 10})], "what was reviewed ran", said)


def hidden_positional() -> Cell:
    backend = Backend(True)
    layer(backend).require_approval().wrap(pay)("mallory", 5000)
    shown = next(iter(backend.calls.kept.values())).spec.kwargs
    said = f"pay('mallory', 5000) was shown to the approver as {shown} and ran: {RAN}"
    return judge(bool(shown), "shown by name", said)


if __name__ == "__main__":
    blocking = "the wrapped function waits in place; an approval cannot be resumed"
    fill_in(
        "humanlayer",
        {
            "reject_while_relaxed": reject_while_relaxed,
            "resume_twice": absent(blocking),
            "changed_arguments": changed_arguments,
            "expired": absent("an approval has no time to end in the library"),
            "hidden_positional": hidden_positional,
            "quorum": absent("one decision decides"),
            "undo": absent("no undo"),
            "changed_definition": absent("the function object is wrapped once; it cannot change meanwhile"),
            "double_click": untried("decisions are made in its service, which was not run here"),
            "crash": absent(blocking),
            "own_approval": untried("decisions are made in its service, which was not run here"),
        },
    )
