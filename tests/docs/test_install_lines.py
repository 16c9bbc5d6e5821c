"""Every `pip install` line that users are told names something that is there."""

from __future__ import annotations

import pytest
from tests.docs.install_lines import PER_EXTRA, InstallLine, install_lines, known_extras

LINES = list(install_lines())


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.place} {line.text}")
def test_an_install_line_names_what_is_there(line: InstallLine) -> None:
    assert line.extras is not None, f"{line.text!r}: no index has Toolgate yet; write `pip install '.[extra]'`"
    assert line.extras <= {*known_extras(), PER_EXTRA}


@pytest.mark.parametrize("place", ["README.md", "docs/how-to/run-the-server.md", "deploy/Dockerfile", "src/toolgate"])
def test_the_places_users_look_at_are_read(place: str) -> None:
    assert any(line.place.startswith(place) for line in LINES)
