"""The operator's posture: the mode and the policy."""

from __future__ import annotations

from toolgate.interfaces.server.operations import Ask, Operation
from toolgate.interfaces.server.schemas import ModeAnswer, ModeBody, PolicyAnswer
from toolgate.ports.directory import Ability

_BASE = "/my/projects/{project_id}"


async def mode(ask: Ask) -> ModeAnswer:
    return ModeAnswer(mode=ask.services.gate.mode.value)


async def set_mode(ask: Ask) -> ModeAnswer:
    await ask.services.gate.set_mode(ask.body.mode, by=ask.who, reason=ask.body.reason)
    return await mode(ask)


async def policy(ask: Ask) -> PolicyAnswer:
    followed = ask.services.gate.policy
    return PolicyAnswer(revision=followed.revision, default=followed.default.value)


OPERATIONS = (
    Operation(
        method="GET",
        path=_BASE + "/mode",
        summary="Show the operator's mode",
        handler=mode,
        returns=ModeAnswer,
        tag="governance",
    ),
    Operation(
        method="PUT",
        path=_BASE + "/mode",
        summary="Change the mode, for everybody",
        handler=set_mode,
        ability=Ability.ADMIN,
        body=ModeBody,
        returns=ModeAnswer,
        tag="governance",
    ),
    Operation(
        method="GET",
        path=_BASE + "/policy",
        summary="Show which policy is followed",
        handler=policy,
        returns=PolicyAnswer,
        tag="governance",
    ),
)
