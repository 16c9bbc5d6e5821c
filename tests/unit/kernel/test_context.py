"""Who asks and from where."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from toolgate.kernel.context import DEFAULT_CONTEXT, Context, Mode, Principal, PrincipalKind

AN_ID = UUID("6f1c1f0e-7c5c-4f6e-9a55-111111111111")


@pytest.mark.parametrize("kind", PrincipalKind)
def test_only_persons_and_admins_decide(kind: PrincipalKind) -> None:
    assert Principal(name="x", kind=kind).can_decide is (kind in ("person", "admin"))


def test_a_bare_name_or_uuid_is_a_person() -> None:
    assert Principal.of("ann") == Principal(name="ann", kind=PrincipalKind.PERSON)
    assert Principal.of(AN_ID).name == str(AN_ID)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("agent:local", "agent"),
        ("runner:laptop", "runner"),
        ("policy:auto", "policy"),
        ("agent", "person"),
        ("agents:x", "person"),
        ("mail:ann", "person"),
        ("", "person"),
    ],
)
def test_a_name_may_say_that_it_is_no_person(name: str, kind: str) -> None:
    assert Principal.of(name) == Principal(name=name, kind=PrincipalKind(kind))


def test_a_principal_is_taken_as_it_is() -> None:
    agent = Principal(name="agent:1", kind=PrincipalKind.AGENT, roles=frozenset({"writer"}))
    assert Principal.of(agent) is agent


def test_a_name_that_is_a_uuid_is_its_own_id() -> None:
    assert Principal.of(AN_ID).id == AN_ID


def test_any_other_name_has_one_stable_id() -> None:
    assert Principal.of("policy:auto").id == UUID("1d4a3669-ad7a-5e0d-a3ca-e849a85b521f")
    assert Principal.of("ann").id != Principal.of("bob").id


def test_a_context_without_words_is_the_local_agent_in_the_default_project() -> None:
    assert Context() == DEFAULT_CONTEXT
    assert (DEFAULT_CONTEXT.principal, DEFAULT_CONTEXT.project, DEFAULT_CONTEXT.behavior) == (
        "agent:local",
        "default",
        None,
    )


def test_the_hosts_own_object_is_neither_compared_nor_shown() -> None:
    one, other = Context(host=object()), Context(host=uuid4())
    assert one == other
    assert hash(one) == hash(other)
    assert "host" not in repr(one)


@pytest.mark.parametrize("mode", Mode)
def test_a_mode_is_found_by_its_text(mode: Mode) -> None:
    assert Mode(mode.value) is mode
    assert {mode.value: 1}[mode] == 1
    assert f"{mode}" == mode.name
