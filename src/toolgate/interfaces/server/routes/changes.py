"""Changing the policy over the wire: what a sandboxed run may have written is accepted, an exact line is learned.

Both take effect only as they were shown: by the revision that somebody looked at.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from toolgate.authority import Verb, may
from toolgate.errors import ConflictError, PolicyError, PolicyHeldError, UsageError
from toolgate.interfaces.server.operations import Ask, Operation
from toolgate.interfaces.server.problems import ProblemError
from toolgate.kernel.policy import Policy
from toolgate.kernel.text.rendering import few, reveal
from toolgate.wire.policy import (
    AcceptPolicyAnswer,
    AcceptPolicyBody,
    ChangedFile,
    HeldPolicy,
    HeldPolicyAnswer,
    LearnAnswer,
    LearnBody,
    LearnedAnswer,
)

if TYPE_CHECKING:
    from toolgate.policy.compile import FilePolicy
    from toolgate.policy.learn import Proposal

_POLICY = "/my/projects/{project_id}/policy"
_LEARN = "/my/projects/{project_id}/tools/{tool_id}/learn"


async def held(ask: Ask) -> HeldPolicyAnswer:
    """Show what waits for a person's word; of the files of other projects only to who may give it."""
    gate = ask.services.gate
    found = await gate.host.held_policy()
    if found is None:
        return HeldPolicyAnswer()
    may_accept = may(Verb.ACCEPT_POLICY, ask.by, ask.project)
    seen = found.diffs.keys() if may_accept else _files_of(gate.host.policy(ask.project)) & found.diffs.keys()
    files = await asyncio.to_thread(lambda: [_changed(name, found.diffs[name]) for name in sorted(seen)])
    return HeldPolicyAnswer(
        held=HeldPolicy(
            revision=found.revision,
            kept=found.kept,
            files=files,
            hidden=len(found.diffs) - len(files),
            may_accept=may_accept,
        )
    )


def _files_of(policy: Policy) -> set[str]:
    return {os.path.abspath(one.name) for one in getattr(policy, "documents", ())}


def _changed(name: str, diff: str) -> ChangedFile:
    """A file's change, in which nothing that a run wrote can hide, move or imitate anything."""
    shown = reveal(diff)
    return ChangedFile(name=reveal(name).text, diff=shown.text, warnings=list(few(shown.warnings)))


async def accept(ask: Ask) -> AcceptPolicyAnswer:
    body: AcceptPolicyBody = ask.body
    host = ask.services.gate.host
    try:
        followed = await host.accept_policy(body.revision, by=ask.who)
    except PolicyError as error:
        told = host.masker.text(str(error))
        raise ProblemError(409, error.code, f"What the policy files say now is no policy: {told}") from None
    await ask.services.hub.tell_policy()
    return AcceptPolicyAnswer(revision=followed.revision)


async def learn(ask: Ask) -> LearnAnswer:
    """Show the narrowest change that would have allowed a call."""
    from toolgate.policy.writing import is_writable

    found = await _proposed(ask)
    told: Any = ask.services.gate.host.masker(found.as_json())
    can_write = may(Verb.ACCEPT_POLICY, ask.by, ask.project) and is_writable(found.texts)
    return LearnAnswer(
        **{name: told[name] for name in ("then", "files", "revised")},
        diff=reveal(told["diff"]).text,
        lines=[reveal(line).text for line in told["lines"]],
        because=reveal(told["because"]).text,
        revision=found.revision,
        may_write=can_write,
    )


async def write(ask: Ask) -> LearnedAnswer:
    """Write the change that was shown, and follow it; one that is followed already is not written twice."""
    body: LearnBody = ask.body
    host = ask.services.gate.host
    await ask.call()
    if host.policy(ask.project).revision == body.revised:
        return LearnedAnswer(files=[], is_followed=True)
    from toolgate.policy.writing import write_texts

    policy, found = _own(ask), await _proposed(ask)
    if found.revised != body.revised:
        raise ConflictError("The change would be another one by now than what was shown; look at it again.")
    await asyncio.to_thread(write_texts, policy, found.texts)
    try:
        await host.reload_policy(by=ask.who)
        is_followed = True
    except PolicyHeldError:  # a run that could write the files is on: nobody can tell who wrote what
        is_followed = False
    await ask.services.hub.tell_policy()
    return LearnedAnswer(files=sorted(found.texts), is_followed=is_followed)


def _own(ask: Ask) -> FilePolicy:
    from toolgate.policy.compile import FilePolicy

    policy = ask.services.gate.host.policy(ask.project)
    if not isinstance(policy, FilePolicy):
        raise UsageError("This server's policy comes from no file, so nothing can be learned into one.")
    return policy


async def _proposed(ask: Ask) -> Proposal:
    from toolgate.policy.learn import propose, question_about
    from toolgate.policy.loader import revise_policy

    call, policy = await ask.call(), _own(ask)
    question = question_about(call, {tool.name: tool for tool in ask.services.gate.registry})

    def proposed() -> Proposal:
        current = revise_policy(policy, {})  # the one in force must not remember what is only tried
        try:
            return propose(current, question)
        finally:
            current.close()

    return await asyncio.to_thread(proposed)


OPERATIONS = (
    Operation(
        method="GET",
        path=_POLICY + "/held",
        summary="Show the policy that waits for a person's word, as a diff",
        handler=held,
        verb=Verb.TRY_POLICY,
        returns=HeldPolicyAnswer,
        tag="governance",
    ),
    Operation(
        method="POST",
        path=_POLICY + "/accept",
        summary="Accept the policy that waits, as it was shown",
        handler=accept,
        verb=Verb.ACCEPT_POLICY,
        body=AcceptPolicyBody,
        returns=AcceptPolicyAnswer,
        problems=(409,),
        tag="governance",
    ),
    Operation(
        method="GET",
        path=_LEARN,
        summary="Show the narrowest change of the policy that would have allowed a call",
        handler=learn,
        verb=Verb.TRY_POLICY,
        returns=LearnAnswer,
        tag="governance",
    ),
    Operation(
        method="POST",
        path=_LEARN,
        summary="Write that change into the policy file, as it was shown",
        handler=write,
        verb=Verb.ACCEPT_POLICY,
        body=LearnBody,
        returns=LearnedAnswer,
        problems=(409,),
        tag="governance",
    ),
)
