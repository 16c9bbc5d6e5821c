"""Globs over resolved paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcmatch import glob

from toolgate.errors import UsageError
from toolgate.guards.files import PathFact
from toolgate.guards.patterns import PathPatterns


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/a/**", "/a", True),
        ("/a/**", "/a/b/c", True),
        ("/a/**", "/ab", False),
        ("/a/**/z", "/a/z", True),
        ("/a/**/z", "/a/b/c/z", True),
        ("/a/*", "/a/b/c", False),
        ("/a/*", "/a", False),
        ("src/*.py", "/w/src/x.py", True),
        ("src/*.py", "/w/src/a/x.py", False),
        ("./src/", "/w/src", True),
        (".env", "/w/deep/er/.env", True),
        ("**/b", "/a/b", True),
        ("**", "/anything/at/all", True),
        ("/", "/", True),
        ("/x[ab]", "/xa", True),
        ("/x[!ab]", "/xa", False),
        ("/x[!ab]", "/xc", True),
        ("/x[!ab]y", "/x/y", False),
        ("/x[", "/x[", True),
        ("/{a,b/c}/d", "/b/c/d", True),
        ("/a,b}", "/a,b}", True),
        ("/\\*", "/*", True),
        ("/\\*", "/x", False),
        ("/a?c", "/a/c", False),
        ("/a.c", "/abc", False),
        ("/*", "/new\nline", True),
        ("/A", "/a", False),
    ],
)
def test_a_pattern_covers_what_it_says(pattern: str, path: str, matches: bool) -> None:
    assert (PathPatterns([pattern], base="/w").match(path) == pattern) is matches


def test_the_base_is_taken_literally() -> None:
    patterns = PathPatterns(["src/*"], base="/w/[x]*")
    assert patterns.match("/w/[x]*/src/a") == "src/*"
    assert patterns.match("/w/xyz/src/a") is None


def test_a_tree_covers_what_is_beneath() -> None:
    assert PathPatterns([".ssh"], tree=True).match("/home/me/.ssh/id") == ".ssh"
    assert PathPatterns([".ssh"]).match("/home/me/.ssh/id") is None


def test_case_is_ignored_where_asked() -> None:
    assert PathPatterns([".env"], ignore_case=True).match("/w/.ENV") == ".env"
    assert PathPatterns(["straße"], ignore_case=True).match("/w/STRAßE") == "straße"


def test_an_exception_takes_back() -> None:
    patterns = PathPatterns([".env.*", "!.env.example"])
    assert patterns.match("/w/.env.local") == ".env.*"
    assert patterns.match("/w/.env.example") is None


def test_every_name_of_a_fact_counts() -> None:
    fact = PathFact(given="x", path="/w/x", root="/w", kind="file", aliases=("/w/.env",))
    assert PathPatterns([".env"]).match_fact(fact) == ".env"
    assert PathPatterns([".pem"]).match_fact(fact) is None


def test_no_pattern_covers_nothing() -> None:
    assert PathPatterns([]).match("/") is None


@pytest.mark.parametrize("pattern", ["", "a\0b", "/{a", "/[z-a]"])
def test_a_pattern_that_makes_no_sense_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError):
        PathPatterns([pattern])


PIECE = st.sampled_from(["a", "b", ".env", "x.py", "*", "?", "**", "*.py", "[ab]", "[!a]", "a*", "*b*", "{a,b}", ".*"])
NAME = st.sampled_from(["a", "b", "ab", ".env", "x.py", ".a", "..x", "bab", "a.py", "["])


@given(pieces=st.lists(PIECE, min_size=1, max_size=5), names=st.lists(NAME, min_size=1, max_size=5))
def test_patterns_agree_with_wcmatch(pieces: list[str], names: list[str]) -> None:
    pattern, path = "/" + "/".join(pieces), "/" + "/".join(names)
    theirs = glob.globmatch(path + "/", pattern, flags=glob.GLOBSTAR | glob.DOTGLOB | glob.BRACE)
    assert (PathPatterns([pattern]).match(path) is not None) == theirs
