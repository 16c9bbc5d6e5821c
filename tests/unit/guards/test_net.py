"""URLs read strictly, and the addresses that are not public."""

from __future__ import annotations

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.errors import DefinitionError
from toolgate.guards.addresses import carried, forbidden
from toolgate.guards.net import HostRules, UrlRefused, parse_url
from toolgate.guards.reach import PlaceReach
from toolgate.kernel.policy import Word


@pytest.mark.parametrize(
    ("text", "url", "host", "port"),
    [
        ("https://example.com", "https://example.com/", "example.com", 443),
        ("HTTP://Example.COM:80/a?b=c#d", "http://example.com/a?b=c", "example.com", 80),
        ("https://example.com.:8443/", "https://example.com:8443/", "example.com", 8443),
        ("https://bücher.example/ä?ö", "https://xn--bcher-kva.example/%C3%A4?%C3%B6", "xn--bcher-kva.example", 443),
        ("https://BÜCHER.example./", "https://xn--bcher-kva.example/", "xn--bcher-kva.example", 443),
        ("https://bu\u0308cher.example/", "https://xn--bcher-kva.example/", "xn--bcher-kva.example", 443),
        ("https://straße.example/", "https://xn--strae-oqa.example/", "xn--strae-oqa.example", 443),
        ("https://βόλος.example/", "https://xn--nxasmm1c.example/", "xn--nxasmm1c.example", 443),
        ("https://例え。テスト:8443/", "https://xn--r8jz45g.xn--zckzah:8443/", "xn--r8jz45g.xn--zckzah", 8443),
        ("https://xn--n3h.example/", "https://xn--n3h.example/", "xn--n3h.example", 443),
        ("https://[2606:4700::1111]/x", "https://[2606:4700::1111]/x", "2606:4700::1111", 443),
        ("https://93.184.216.34/", "https://93.184.216.34/", "93.184.216.34", 443),
        ("https://example.com?q=1", "https://example.com/?q=1", "example.com", 443),
        ("https://example.com/a%20b/../c;d,e:@f", "https://example.com/a%20b/../c;d,e:@f", "example.com", 443),
        ("https://my_host.example.com/", "https://my_host.example.com/", "my_host.example.com", 443),
        ("https://localhost/", "https://localhost/", "localhost", 443),
    ],
)
def test_a_url_is_taken_apart(text: str, url: str, host: str, port: int) -> None:
    target = parse_url(text)
    assert (target.url, target.host, target.port) == (url, host, port)
    assert parse_url(target.url) == target


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "characters"),
        ("example.com", "scheme"),
        ("//example.com/", "scheme"),
        ("https:example.com", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("gopher://x/", "scheme"),
        ("javascript:alert(1)", "scheme"),
        ("https://user@example.com/", "userinfo"),
        ("https://user:pw@example.com/", "userinfo"),
        ("https://example.com@127.0.0.1/", "userinfo"),
        ("https:///path", "host"),
        ("https://:80/", "host"),
        ("https://exa mple.com/", "characters"),
        ("https://example.com/\r\nX: y", "characters"),
        ("https://example.com\\@evil.com/", "characters"),
        ("https://example.com/%zz", "characters"),
        ("https://example.com/\udc80", "characters"),
        ("https://exa%6dple.com/", "host"),
        ("https://2130706433/", "host"),
        ("https://0x7f.1/", "host"),
        ("https://0x7f000001/", "host"),
        ("https://127.1/", "host"),
        ("https://0177.0.0.1/", "host"),
        ("https://127.0.0.1.2/", "host"),
        ("https://256.1.1.1/", "host"),
        ("https://①②⑦.0.0.1/", "host"),
        ("https://ⓔxample.com/", "host"),
        ("https://example。com/", "host"),
        ("https://127。0。0。1/", "host"),
        ("https://１２７.0.0.1/", "host"),
        ("https://bücher.①②⑦/", "host"),
        ("https://bücher.127.0.0.1/", "host"),
        ("https://localhost。/", "host"),
        ("https://l\u1d52calhost/", "host"),
        ("https://\u212aube.example/", "host"),
        ("https://exam\u00adple.com/", "host"),
        ("https://a\u200db.example/", "host"),
        ("https://bü_cher.example/", "host"),
        ("https://bücher..example/", "host"),
        ("https://" + "ü" * 64 + ".example/", "host"),
        ("https://☃.example/", "host"),
        ("https://[::1/", "host"),
        ("https://[fe80::1%25eth0]/", "host"),
        ("https://[::ffff:127.0.0.1.]/", "host"),
        ("https://-a.com/", "host"),
        ("https://a..com/", "host"),
        ("https://" + "a" * 64 + ".com/", "host"),
        ("https://example.com:0/", "port"),
        ("https://example.com:65536/", "port"),
        ("https://example.com:8o/", "host"),
        ("https://example.com/" + "a" * 9000, "too_long"),
    ],
)
def test_an_odd_url_is_refused(text: str, kind: str) -> None:
    with pytest.raises(UrlRefused) as refused:
        parse_url(text)
    assert refused.value.kind == kind


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("0.0.0.0", "this network"),
        ("10.1.2.3", "private"),
        ("172.31.0.1", "private"),
        ("192.168.0.1", "private"),
        ("100.64.0.1", "shared"),
        ("169.254.1.1", "link-local"),
        ("169.254.169.254", "metadata"),
        ("168.63.129.16", "metadata"),
        ("100.100.100.200", "shared"),
        ("224.0.0.1", "multicast"),
        ("255.255.255.255", "reserved"),
        ("198.18.0.1", "benchmarking"),
        ("::1", "loopback"),
        ("::", "unspecified"),
        ("::ffff:127.0.0.1", "mapped of loopback"),
        ("::ffff:0:127.0.0.1", "translated of loopback"),
        ("::127.0.0.1", "IPv4-compatible of loopback"),
        ("64:ff9b::7f00:1", "NAT64 of loopback"),
        ("64:ff9b::a9fe:a9fe", "NAT64 of metadata"),
        ("64:ff9b:1::7f00:1", "local-use translation"),
        ("2002:7f00:1::", "6to4 of loopback"),
        ("2002:a9fe:a9fe::1", "6to4 of metadata"),
        ("2001:0:7f00:1::", "Teredo server of loopback"),
        ("2001:0:5db8:d822:0:0:80ff:fffe", "Teredo of loopback"),
        ("2606:4700::5efe:7f00:1", "ISATAP of loopback"),
        ("fd00:ec2::254", "metadata"),
        ("fc00::1", "unique local"),
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "scoped"),
        ("fec0::1", "site-local"),
        ("ff02::1", "multicast"),
        ("2001:db8::1", "documentation"),
        ("4000::1", "unassigned"),
        ("::2:0:0", "unassigned"),
    ],
)
def test_an_address_that_is_not_public_is_named(address: str, why: str) -> None:
    assert why in str(forbidden(address))


@pytest.mark.parametrize(
    "address",
    ["93.184.216.34", "1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::1"],
)
def test_a_public_address_is_allowed(address: str) -> None:
    assert forbidden(address) is None


@given(st.ip_addresses(v=4))
def test_no_wrapping_makes_an_address_public(inner: ipaddress.IPv4Address) -> None:
    number = int(inner)
    wrapped = [
        f"::ffff:{inner}",
        str(ipaddress.IPv6Address((0x64FF9B << 96) | number)),
        str(ipaddress.IPv6Address((0x2002 << 112) | (number << 80) | 1)),
    ]
    for text in wrapped:
        assert (forbidden(text) is None) == (forbidden(inner) is None)


@given(st.ip_addresses())
def test_what_python_calls_local_is_never_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if address.is_private or address.is_loopback or address.is_link_local or address.is_multicast:
        exceptions = [inner for _, inner in carried(address)] if address.version == 6 else []
        assert forbidden(address) is not None or exceptions


def test_names_are_judged_by_the_strictest_list() -> None:
    rules = HostRules(
        ports=(443, 8443), allow=("*.example.com", "example.com"), ask=("new.example.com",), deny=("*.bad.example.com",)
    )
    words = {
        "https://example.com/": Word.ALLOW,
        "https://docs.example.com:8443/": Word.ALLOW,
        "https://new.example.com/": Word.ASK,
        "https://x.bad.example.com/": Word.DENY,
        "https://notexample.com/": Word.DENY,
        "https://example.com.evil.org/": Word.DENY,
        "http://example.com/": Word.DENY,
        "https://example.com:22/": Word.DENY,
    }
    assert {url: rules.judge(parse_url(url))[0] for url in words} == words
    assert HostRules(schemes=("https",)).judge(parse_url("http://example.com/"))[0] is Word.DENY


@pytest.mark.parametrize("url", ["https://127.0.0.1/", "https://[::1]/", "https://[::ffff:169.254.169.254]/"])
def test_a_literal_address_that_is_not_public_is_denied(url: str) -> None:
    assert HostRules().judge(parse_url(url))[0] is Word.DENY


@pytest.mark.parametrize("url", ["http://localhost/", "http://LOCALHOST./", "http://app.localhost/"])
def test_a_name_that_always_means_this_machine_is_denied_unless_a_network_opens_it(url: str) -> None:
    word, reason = HostRules(ask=("*",)).judge(parse_url(url))
    assert (word, "this machine" in reason) == (Word.DENY, True)
    for opened in ("127.0.0.0/8", "::1/128"):
        assert HostRules(ask=("*",), allow_networks=(opened,)).judge(parse_url(url))[0] is Word.ASK
    assert HostRules().judge(parse_url("http://localhost.example/"))[0] is Word.ALLOW


def test_networks_open_and_close_addresses() -> None:
    rules = HostRules(allow_networks=("10.1.0.0/16",), deny_networks=("1.1.1.0/24",))
    refused = {text: rules.refuse_address(ipaddress.ip_address(text)) for text in ("10.1.2.3", "10.2.0.1", "1.1.1.1")}
    assert refused["10.1.2.3"] is None
    assert "not public" in str(refused["10.2.0.1"])
    assert "denied network" in str(refused["1.1.1.1"])
    assert "denied network" in str(rules.refuse_address(ipaddress.ip_address("64:ff9b::101:101")))


@pytest.mark.parametrize(
    "bad", [{"allow": ("exa mple",)}, {"deny": ("*.*.com",)}, {"allow_networks": ("10.0.0.0/99",)}]
)
def test_rules_that_make_no_sense_are_refused(bad: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(DefinitionError):
        HostRules(**bad)  # type: ignore[arg-type]  # a table of keywords


def test_a_name_may_be_an_address() -> None:
    assert HostRules(allow=("2606:4700::1111",)).judge(parse_url("https://[2606:4700:0::1111]/"))[0] is Word.ALLOW


@given(st.text(max_size=60))
def test_no_text_makes_the_reader_fail_otherwise(text: str) -> None:
    for start in ("", "https://", "http://example.com"):
        try:
            target = parse_url(start + text)
        except UrlRefused:
            continue
        assert target.url.isascii()
        assert parse_url(target.url) == target


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        (HostRules(), "any public host (ports 80, 443)"),
        (HostRules(allow=()), "no host (ports 80, 443)"),
        (HostRules(allow=(), deny=("a.org",), ports=()), "no host (ports none)"),
        (
            HostRules(allow=("*",), ask=("b.org",), deny=("a.org",), allow_networks=("10.0.0.0/8",), ports=(443,)),
            "any public host but a.org, b.org, and the networks 10.0.0.0/8 (ports 443)",
        ),
        (HostRules(allow=("a.org", "*.b.org")), "a.org, *.b.org (ports 80, 443)"),
    ],
)
def test_what_a_command_reaches_is_told_in_words(rules: HostRules, told: str) -> None:
    assert rules.told() == told


def test_a_reach_for_one_place_connects_there_alone() -> None:
    rules = HostRules(allow=("127.0.0.1",), allow_networks=("127.0.0.1/32",))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        reach = PlaceReach(rules, "127.0.0.1", port)
        assert (reach.name(f"https://127.0.0.1:{port}/"), reach.sees_this_machine) == (("127.0.0.1", port), False)
        reach.open(f"https://127.0.0.1:{port}/").socket.close()
        for url in (f"https://127.0.0.1:{port + 1 if port < 65535 else 1}/", f"https://example.com:{port}/"):
            with pytest.raises(UrlRefused, match="was agreed to"):
                reach.open(url)
        for other in (HostRules(deny=("127.0.0.1",)), HostRules(), HostRules(ports=())):
            with pytest.raises(UrlRefused, match="refused"):
                PlaceReach(other, "127.0.0.1", port).open(f"https://127.0.0.1:{port}/")
