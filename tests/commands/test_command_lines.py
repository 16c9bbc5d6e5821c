"""What coding agents run gets the wanted word under `developer`, and what could do harm is never run unasked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.commands.figures import figures
from tests.commands.hostile import hostile
from tests.commands.judging import installed, line_word, load, make_workspace, words_of
from tests.commands.usual import usual

from toolgate.kernel.policy import Word
from toolgate.policy import FilePolicy


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, FilePolicy]]:
    top = tmp_path_factory.mktemp("commands")
    workspace = make_workspace(top)
    with installed(top / "bin", [*(each.text for each in usual()), *hostile()]):
        yield {"developer": load("developer", workspace), "readonly": load("readonly", workspace)}


def test_each_usual_line_gets_the_word_it_should(profiles: dict[str, FilePolicy]) -> None:
    words = {each.text: (each.word.value, line_word(profiles["developer"], each.text).value) for each in usual()}
    assert {line: got for line, (wanted, got) in words.items() if wanted != got} == {}


def test_no_hostile_line_runs_unasked(profiles: dict[str, FilePolicy]) -> None:
    developer = profiles["developer"]
    ways = {line: words_of(developer, line) for line in hostile()}
    assert [line for line, words in ways.items() if Word.ALLOW in words] == []


def test_readonly_runs_nothing_that_changes_or_harms(profiles: dict[str, FilePolicy]) -> None:
    lines = [*(each.text for each in usual() if each.word is Word.ASK), *hostile()]
    words = {line: line_word(profiles["readonly"], line).value for line in lines}
    assert {line: word for line, word in words.items() if word != "deny"} == {}


def test_the_lists_are_long_and_hold_each_line_once() -> None:
    lines = [each.text for each in usual()]
    assert len(lines) >= 450
    assert len(set(lines)) == len(lines)
    assert len(hostile()) >= 400
    assert len(set(hostile())) == len(hostile())


def test_most_of_the_commonest_lines_run_unasked_and_none_is_a_wall(profiles: dict[str, FilePolicy]) -> None:
    found = figures(profiles["developer"])
    assert found.lines == 150
    assert found.unasked >= 0.7 * found.lines
    assert found.denied == 0
