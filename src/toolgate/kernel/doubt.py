"""Whether the effect of a run that did not return may have happened. Nobody else decides that.

After a handler with declared effects or an effect key has started, an error leaves its outcome unknown, unless the
handler, its tool or the policy says that nothing happened. A handler that declares nothing fails plainly, except where
its connection was lost: whoever was asked may have done it. What only reads, or may be repeated, is never in doubt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from toolgate.errors import NotExecuted, SandboxError, ToolUnknownOutcomeError, text_of
from toolgate.kernel.policy import OnError, Stance
from toolgate.kernel.tool import Effects, ToolDefinition

_MOST: Final = 16
"""How many errors are looked at: libraries wrap the error of the system in their own, one upon the other."""
_LOST: Final = frozenset(
    (
        "ConnectionResetError",
        "ConnectionAbortedError",
        "BrokenPipeError",
        # Libraries that notice it by themselves: nothing of the system's stands behind these.
        "RemoteProtocolError",
        "ServerDisconnectedError",
    )
)
_REFUSED: Final = frozenset(("ConnectionRefusedError", "socket.gaierror"))


class Meaning(StrEnum):
    """What an error says of the effect."""

    NOTHING_HAPPENED = "nothing happened"
    UNKNOWN = "unknown"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """How runs of one tool that do not return are read, under one policy.

    `is_declared`: an error after the start leaves the outcome unknown. `has_effects`: so does losing sight of it.
    `harmless` are names of errors that mean nothing happened.
    """

    is_declared: bool = False
    has_effects: bool = True
    harmless: frozenset[str] = frozenset()

    def of(self, error: BaseException, *, began: bool = True) -> Meaning:
        """What it means that a handler raised this, or its runner did; `began`: the handler may have been entered."""
        kinds = kinds_of(error)
        if _SAYS_UNKNOWN in kinds:
            return Meaning.UNKNOWN
        has_begun = began and not (isinstance(error, SandboxError) and not error.may_have_run)
        if not has_begun or _SAYS_NOTHING in kinds or not self.harmless.isdisjoint(kinds):
            return Meaning.NOTHING_HAPPENED
        if self.is_declared or (self.has_effects and is_lost(error)):
            return Meaning.UNKNOWN
        return Meaning.FAILED


def may_repeat(tool: ToolDefinition, stance: Stance) -> bool:
    """Whether running a tool once more does no harm: its own word, unless a policy says."""
    return tool.can_retry if stance.may_retry is None else stance.may_retry


def doubt_of(tool: ToolDefinition, stance: Stance) -> Doubt:
    """Return how the runs of a tool that do not return are read under a policy."""
    is_harmless = may_repeat(tool, stance)
    is_keyed = tool.effect is not None or stance.effect is not None
    is_declared = (is_keyed or tool.effects in (Effects.REVERSIBLE, Effects.IRREVERSIBLE)) and not is_harmless
    if stance.on_error is not None:
        is_declared = stance.on_error is OnError.UNKNOWN
    return Doubt(
        is_declared=is_declared,
        has_effects=tool.has_effects and not is_harmless and stance.on_error is not OnError.FAILED,
        harmless=frozenset(names_of(tool.nothing_happened)) | stance.nothing_happened,
    )


def names_of(kinds: Iterable[type]) -> Iterator[str]:
    """Yield the names by which classes of errors are known: with their module, but for Python's own."""
    for kind in kinds:
        yield kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def kinds_of(error: BaseException) -> frozenset[str]:
    """Return the names of everything an error is an instance of.

    An error that was raised in another process carries, as `kinds`, the names it had there.
    """
    told = error.__dict__.get("kinds")
    return told if isinstance(told, frozenset) else frozenset(names_of(type(error).__mro__))


def carried_kinds(error: BaseException) -> frozenset[str]:
    """Return the names by which an error is read in another process: what it is, and whether a connection was lost."""
    lost = frozenset(names_of((ConnectionResetError,))) if is_lost(error) else frozenset()
    return kinds_of(error) | lost


_SAYS_NOTHING, _SAYS_UNKNOWN = names_of((NotExecuted, ToolUnknownOutcomeError))


def says_nothing_happened(error: BaseException) -> bool:
    """Whether a handler said itself, here or in another process, that nothing happened."""
    return _SAYS_NOTHING in kinds_of(error)


def is_lost(error: BaseException) -> bool:
    """Whether a connection was lost while it was in use: what was sent may have been carried out."""
    return any(name.rpartition(".")[2] in _LOST for one in _behind(error) for name in kinds_of(one))


def _behind(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what led to it, one by one where there were several at once."""
    waiting = [error]
    for _ in range(_MOST):
        if not waiting:
            return
        one = waiting.pop()
        yield one
        waiting += one.exceptions if isinstance(one, BaseExceptionGroup) else ()
        before = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
        waiting += () if before is None else (before,)


@contextmanager
def nothing_sent() -> Iterator[None]:
    """Raise `NotExecuted` where what is done inside could not even connect: it was refused, or there is no such name.

    Put it around the one request that has the effect. Any other error, and one after a connection was lost, is passed
    on as it is.
    """
    try:
        yield
    except Exception as error:
        is_refused = any(not _REFUSED.isdisjoint(kinds_of(one)) for one in _behind(error))
        if is_refused and not is_lost(error):
            raise NotExecuted(f"nothing was sent: {text_of(error)}") from error
        raise
