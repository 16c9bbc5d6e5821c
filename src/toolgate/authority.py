"""May this account do this to that, now? Every surface asks here, at the moment it is done.

`RIGHTS` says for each verb which ability it takes and on whose things: the server's surfaces ask for an account. Who
may answer a question, by its terms, is asked of every answer, the library's too.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple, Protocol

from toolgate.errors import NotAllowedError, NotFoundError, UsageError
from toolgate.kernel.approval import Approval
from toolgate.kernel.brake import Brake, is_pull
from toolgate.kernel.call import Call
from toolgate.kernel.context import Context, Mode, Principal, PrincipalKind
from toolgate.kernel.delegation import Delegation
from toolgate.ports.directory import ABILITIES, Ability, Directory


class Verb(StrEnum):
    """Everything that can be done with what the server keeps."""

    READ = "read"
    STREAM = "stream"
    ASK = "ask"
    JOIN = "join"
    CLAIM = "claim"
    REPEAT = "repeat"
    CANCEL = "cancel"
    UNDO = "undo"
    UNDO_RUN = "undo a run"
    FORCE = "undo by force"
    TALK = "talk to the agent"
    OVERSEE = "oversee conversations"
    DECIDE = "decide"
    EDIT = "edit"
    RESPOND = "respond"
    EXTEND = "extend"
    ESCALATE = "escalate"
    COMMENT = "comment"
    DELEGATE = "delegate"
    END_DELEGATION = "end a delegation"
    REMEMBER = "remember"
    REVOKE = "revoke"
    SETTLE = "settle"
    TRY_POLICY = "try a policy"
    DISPATCH = "run"
    REPORT = "report"
    PROGRESS = "report progress"
    PULL = "pull the brake"
    SET_MODE = "set the mode"
    CHANGE_POLICY = "change the policy"
    ACCEPT_POLICY = "accept a policy"
    SIGN_IN = "sign in"
    MAKE_TOKENS = "make tokens"


class Whose(StrEnum):
    """On whose things a verb may be done."""

    ANYBODYS = "anybody's"
    OWN = "one's own"
    OWN_OR_DECIDERS = "one's own; anybody's for who may decide"
    OWN_OR_RUNNERS = "one's own; anybody's for a runner"
    GIVEN = "what was given to one"


class Right(NamedTuple):
    """What a verb takes. `condition` is what is asked besides, in words."""

    ability: Ability
    whose: Whose = Whose.ANYBODYS
    condition: str = ""


_TERMS = "the question's terms: roles, separation, one vote each; never an agent or a runner"
_LENT = "for another person too whose vote was delegated to one and who may decide it now"

RIGHTS: dict[Verb, Right] = {
    Verb.READ: Right(Ability.READ, condition="real arguments and results only of one's own; everything else is masked"),
    Verb.STREAM: Right(Ability.READ, condition="read again before each event"),
    Verb.ASK: Right(
        Ability.ASK,
        condition="the tool's rules; an agent names no session or run of somebody else, and no behavior but its roles'",
    ),
    Verb.JOIN: Right(Ability.ASK, Whose.OWN, "the same principal and user, tool and arguments"),
    Verb.CLAIM: Right(Ability.ASK, Whose.OWN, "a call placed at its caller, approved, once"),
    Verb.REPEAT: Right(Ability.ASK, Whose.OWN, "as a new call"),
    Verb.CANCEL: Right(Ability.ASK, Whose.OWN_OR_DECIDERS),
    Verb.UNDO: Right(Ability.ASK, Whose.OWN_OR_DECIDERS, "the tool's rules"),
    Verb.UNDO_RUN: Right(Ability.DECIDE, condition="the tools' rules"),
    Verb.FORCE: Right(Ability.ADMIN),
    Verb.TALK: Right(Ability.ASK, Whose.OWN, "one's own conversations"),
    Verb.OVERSEE: Right(Ability.ADMIN),
    Verb.DECIDE: Right(Ability.DECIDE, condition=f"{_TERMS}; {_LENT}"),
    Verb.EDIT: Right(Ability.DECIDE, condition=f"{_TERMS}, as if the edited call had been asked about"),
    Verb.RESPOND: Right(Ability.DECIDE, condition=_TERMS),
    Verb.EXTEND: Right(Ability.DECIDE, condition=_TERMS),
    Verb.ESCALATE: Right(Ability.DECIDE, condition=f"{_TERMS}; only to whom the policy names"),
    Verb.COMMENT: Right(Ability.DECIDE, condition="a person"),
    Verb.DELEGATE: Right(
        Ability.DECIDE, Whose.OWN, "one's own vote, for a limited time, to another person who may decide in the project"
    ),
    Verb.END_DELEGATION: Right(Ability.DECIDE, Whose.OWN, "who gave it, or an admin"),
    Verb.REMEMBER: Right(Ability.DECIDE, condition=f"{_TERMS}; who decides alone"),
    Verb.REVOKE: Right(Ability.DECIDE, condition="a person"),
    Verb.SETTLE: Right(Ability.DECIDE, condition="a person"),
    Verb.TRY_POLICY: Right(Ability.DECIDE),
    Verb.DISPATCH: Right(Ability.RUN, Whose.OWN_OR_RUNNERS, "once; the rules of now; never with `listen=1`"),
    Verb.REPORT: Right(Ability.RUN, Whose.GIVEN, "with the fence it was given with"),
    Verb.PROGRESS: Right(Ability.RUN, Whose.GIVEN, "with the fence it was given with"),
    Verb.PULL: Right(
        Ability.DECIDE,
        condition="over this project, or an agent or a run in it; releasing or loosening takes `set the mode`",
    ),
    Verb.SET_MODE: Right(Ability.ADMIN),
    Verb.CHANGE_POLICY: Right(Ability.ADMIN, condition="on the server's machine"),
    Verb.ACCEPT_POLICY: Right(
        Ability.ADMIN,
        condition="a person; a policy that waits for a word, or a line that a call taught, by the revision shown",
    ),
    Verb.SIGN_IN: Right(Ability.READ, Whose.OWN, "sessions and tickets that can do no more than what made them"),
    Verb.MAKE_TOKENS: Right(Ability.ADMIN, condition="on the server's machine"),
}
"""Who may do what."""
BEHAVIOR = "behavior:"
"""What a role of an agent's account begins with that names a behavior its calls may be in."""


class Standing(Protocol):
    """Somebody as they are now: an account, narrowed by what they showed."""

    @property
    def name(self) -> str: ...

    def abilities_in(self, project: str) -> frozenset[Ability]: ...

    def principal_in(self, project: str) -> Principal: ...


def check(verb: Verb, who: Standing, project: str, call: Call | None = None) -> Principal:
    """Return somebody as a principal of a project, where they may do this there, to this call.

    A stranger to the project gets NotFoundError, as if nothing were there; one who lacks the right NotAllowedError. An
    admin who shows a token without that ability is a person like any other.
    """
    right, able = RIGHTS[verb], who.abilities_in(project)
    if not able:
        raise NotFoundError("There is nothing of this name or id here.")
    if right.ability not in able:
        raise NotAllowedError(f"{who.name} may not {verb} in this project; that takes {_holders(right.ability)}.")
    principal = who.principal_in(project)
    if principal.kind is PrincipalKind.ADMIN and Ability.ADMIN not in able:
        principal = replace(principal, kind=PrincipalKind.PERSON)
    if call is not None and not _reaches(right.whose, principal, able, call):
        raise NotAllowedError(f"This call is somebody else's: {who.name} may {verb} {right.whose} only.")
    return principal


def may(verb: Verb, who: Standing, project: str, call: Call | None = None) -> bool:
    """Whether `check` would let them."""
    try:
        check(verb, who, project, call)
    except (NotFoundError, NotAllowedError):
        return False
    return True


async def decider(directory: Directory, project: str, name: str) -> Principal | None:
    """Return who an account is in a project now, if it is there and may decide."""
    account = await directory.account(name)
    return account.principal_in(project) if account is not None and may(Verb.DECIDE, account, project) else None


def check_human(verb: Verb, by: Principal) -> None:
    """Raise NotAllowedError for an agent, a runner or a rule, where the host says who acts: only people do this."""
    if RIGHTS[verb].ability not in ABILITIES[by.kind]:
        raise NotAllowedError(f"{by.name} is an {by.kind}; only people {verb}.")


def check_accepting(by: Principal) -> None:
    """Raise NotAllowedError for who is no person: what a run may have written takes effect by a person's word."""
    if not by.can_decide:
        raise NotAllowedError(f"{by.name} is an {by.kind}; only people {Verb.ACCEPT_POLICY}.")


def check_maker(by: Principal, call: Call) -> None:
    """Raise NotAllowedError for who did not make a call that its caller runs."""
    if call.context.principal != by.name:
        raise NotAllowedError(f"Call {call.id} was not made by {by.name}; only who made it runs it.")


def check_holder(by: Principal, call: Call, *, has_fence: bool) -> None:
    """Raise NotAllowedError for who was not given a call, whatever fence they show; who claimed their own shows it."""
    if call.runner != by.name and not (has_fence and is_own(by, call)):
        raise NotAllowedError(f"Call {call.id} does not run at {by.name}; only its runner reports its result.")


def is_same_maker(made: Context, given: Context) -> bool:
    """Whether two calls were made by one and the same, for one and the same."""
    return (made.principal, made.user) == (given.principal, given.user)


def check_name(kind: str, made: Context, given: Context) -> None:
    """Raise NotAllowedError where a call names the session or run of a call that somebody else made."""
    is_theirs = made.principal == given.principal or (made.user is not None and made.user == given.user)
    if not is_theirs:
        raise NotAllowedError(
            f"This {kind} is somebody else's: {given.principal} names {kind}s of its own, or of who it acts for."
        )


def behavior_of(agent: Principal, named: str | None) -> str | None:
    """Return the behavior a call of an agent's account is in: one of those its roles `behavior:NAME` say.

    Where there is one alone it need not be named; where there is none, no behavior can be.
    """
    usable = sorted(role.removeprefix(BEHAVIOR) for role in agent.roles if role.startswith(BEHAVIOR))
    if named is None and len(usable) < 2:
        return usable[0] if usable else None
    if named not in usable:
        which = f"in behavior '{named}'" if named is not None else "in no behavior"
        raise NotAllowedError(
            f"{agent.name} may not call tools {which}; that takes an account with the role `{BEHAVIOR}NAME` in this "
            f"project. Its behaviors: {', '.join(usable) or 'none'}."
        )
    return named


def is_own(who: Principal, call: Call) -> bool:
    """Whether somebody made a call, or it was made for them."""
    return who.name in (call.context.principal, call.context.user)


def check_person(by: Principal, call: Call) -> None:
    """Raise NotAllowedError for who may say nothing about questions, or about this one: who asked it."""
    check_human(Verb.DECIDE, by)
    if Principal.of(call.context.principal).id == by.id:
        raise NotAllowedError(f"{by.name} asked for this call and cannot approve it.")


def check_decider(by: Principal, call: Call, approval: Approval) -> None:
    """Raise NotAllowedError where this principal may not answer this question."""
    check_person(by, call)
    user = call.context.user
    if approval.terms.separation and user is not None and Principal.of(user).id == by.id:
        raise NotAllowedError(f"{by.name} is who this call is for, and another person must decide.")
    if not approval.terms.accepts(by.roles, escalated=approval.escalated):
        wanted = " and ".join("one of " + ", ".join(sorted(roles)) for roles in approval.terms.approvers)
        raise NotAllowedError(f"{by.name} may not decide this; it takes {wanted}.")


def check_delegating(giver: Principal, delegate: Principal) -> None:
    """Raise NotAllowedError where one of them is nobody who decides, or both are the same person."""
    for who in (giver, delegate):
        if not who.can_decide:
            raise NotAllowedError(f"{who.name} is an {who.kind}; only people give and hold votes.")
    if giver.id == delegate.id:
        raise NotAllowedError(f"{giver.name} cannot delegate a vote to themselves.")


def check_delegated(by: Principal, giver: Principal, call: Call, approval: Approval) -> None:
    """Raise NotAllowedError where somebody may not answer this question with the vote of who gave it to them.

    Neither of the two may have asked for the call, nor be who it is for, whatever the terms say of that.
    """
    for who in (by, giver):
        check_person(who, call)
        if call.context.user is not None and Principal.of(call.context.user).id == who.id:
            raise NotAllowedError(f"{who.name} is who this call is for, and no delegated vote decides it.")
    check_decider(giver, call, approval)


def check_ending(by: Principal, delegation: Delegation) -> None:
    """Raise NotAllowedError for who neither gave a delegation nor is an admin."""
    if by.kind is not PrincipalKind.ADMIN and (not by.can_decide or Principal.of(delegation.giver).id != by.id):
        raise NotAllowedError(f"{by.name} may not end this delegation; {delegation.giver} may, and admins.")


def check_pull(by: str, before: Brake, mode: Mode) -> None:
    """Raise NotAllowedError where setting this mode would release or loosen a brake that is pulled."""
    if before.mode is not mode and not is_pull(before.mode, mode):
        raise NotAllowedError(
            f"{by} may pull this brake, not release it; it is {before}. That takes the right to set the mode."
        )


def check_escalation(approval: Approval, roles: frozenset[str]) -> None:
    """Refuse to ask anybody the policy does not name: escalating makes nobody a decider."""
    named = approval.terms.escalate_to
    if not named:
        raise UsageError(
            f"The policy names nobody to escalate `{approval.tool_name}` to; say so with `approval: escalate: to:`."
        )
    if not roles <= named:
        raise NotAllowedError(
            f"`{approval.tool_name}` is escalated to {', '.join(sorted(named))}, as its policy says, and nobody else."
        )


def _reaches(whose: Whose, who: Principal, able: frozenset[Ability], call: Call) -> bool:
    if whose is Whose.ANYBODYS or is_own(who, call):
        return True
    if whose is Whose.OWN_OR_DECIDERS:
        return Ability.DECIDE in able
    if whose is Whose.OWN_OR_RUNNERS:
        return who.kind is PrincipalKind.RUNNER
    return whose is Whose.GIVEN and call.runner == who.name


def _holders(ability: Ability) -> str:
    """Say which accounts have an ability."""
    kinds = [str(kind) for kind, able in ABILITIES.items() if ability in able]
    return f"the ability to {ability}, which accounts of kind {' or '.join(kinds)} have unless narrowed"
