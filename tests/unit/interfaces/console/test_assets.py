"""What browsers get: small, of this version only, and of nobody else's making."""

from __future__ import annotations

import re
from pathlib import Path

import httpx2
import pytest
from tests.unit.interfaces.server.house import House, open_house

from toolgate.interfaces.console.assets import FOLDER, Assets, lean, lean_style

ASSETS = Assets.load()
TEMPLATES = FOLDER.parent / "templates"
LIMIT_BYTES = 66 * 1024
"""60 until people could lend votes, pull brakes by project, agent and run, and see what rows and events differ in."""


def test_the_whole_front_end_is_under_66_kb_packed() -> None:
    assert sum(len(asset.packed) for asset in ASSETS.files.values()) < LIMIT_BYTES


@pytest.mark.parametrize("path", sorted([*FOLDER.rglob("*.*"), *TEMPLATES.rglob("*.html")]), ids=lambda path: path.name)
def test_no_file_names_another_host_or_a_way_to_make_markup(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://(?!\$)", text)
    if path.suffix == ".js":
        assert text.startswith("// @ts-check")
        assert not re.search(r"\.(inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
    if path.suffix == ".html":
        assert not re.search(r"\|\s*safe|<script(?![^>]+src=)|\sstyle=|\son\w+=", text)


def test_a_script_is_sent_without_what_only_people_read() -> None:
    script = b"// @ts-check\n/** Say it.\n * @param {T} a */\nfunction say(a) {\n  return /** @type {T} */ (a);\n}\n"
    assert lean(script) == b"\n\n\nfunction say(a){\nreturn (a);\n}\n"


@pytest.mark.parametrize(
    ("line", "sent"),
    [
        ('a = b ? "x = y" : `c , ${d} , e`;', 'a=b?"x = y":`c , ${d} , e`;'),
        ("a = b + +c - -d;", "a=b + +c - -d;"),
        ("a = b.split(/ , /);", "a = b.split(/ , /);"),
        ("a = `b ${c ? `d , e` : f} , g`;", "a = `b ${c ? `d , e` : f} , g`;"),
    ],
)
def test_spaces_that_count_are_kept(line: str, sent: str) -> None:
    assert lean(line.encode()) == sent.encode()


def test_a_style_sheet_is_sent_without_what_only_people_read() -> None:
    assert lean_style(b"/* all\n of it */\n.a {\n  color: red;\n}\n") == b".a {\ncolor: red;\n}"


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.js")), ids=lambda path: path.name)
def test_no_text_in_a_script_could_be_taken_for_a_comment_or_loses_its_indentation(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        assert line.count("`") % 2 == 0, line
        assert not re.search(r"""["'`][^"'`]*/\*\*[^"'`]*["'`]""", re.sub(r"/\*\*.*?\*/", "", line)), line


def test_a_change_of_any_file_is_another_version(tmp_path: Path) -> None:
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "one.js").write_text("1", encoding="utf-8")
    (tmp_path / "read.me").write_text("not served", encoding="utf-8")
    first = Assets.load(tmp_path)
    (tmp_path / "views" / "one.js").write_text("2", encoding="utf-8")
    assert list(first.files) == ["views/one.js"]
    assert Assets.load(tmp_path).version != first.version


async def test_files_are_kept_for_ever_and_packed_for_who_can_unpack() -> None:
    async with open_house() as house:
        plain = await _get(house, "identity")
        packed = await _get(house, "gzip")
    assert plain.content == packed.content == lean((FOLDER / "core.js").read_bytes())
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert "immutable" in packed.headers["cache-control"]
    assert packed.headers["content-type"].startswith("text/javascript")
    assert packed.headers["x-content-type-options"] == "nosniff"


async def _get(house: House, encoding: str) -> httpx2.Response:
    return await house.client().get(f"{ASSETS.base}/core.js", headers={"Accept-Encoding": encoding})
