"""The page of a report: its parts in order, for every reader, and without anything from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from allosaur.report._counters import PortCounters, PortRates
from allosaur.report._flow_counters import FlowCounters, FlowRates, SideCounters, SideRates
from allosaur.report._flow_outcomes import Outcomes, SideOutcomes
from allosaur.report._model import Chart, Check, Headline, Part, Report, Section, Series, Table, number, text
from allosaur.report._page import write_report
from allosaur.report._streams import Direction, StreamCounters, StreamLatency
from allosaur.run._result import Result, Verdict
from allosaur.run.emulation._counts import Clients, Counter
from allosaur.run.emulation._result import EmulationResult
from allosaur.run.flows import _hints
from allosaur.run.flows._counts import FlowPlan
from allosaur.run.flows._result import FlowResult
from allosaur.run.streams._counts import Plan
from allosaur.run.streams._result import StreamResult

HOSTILE = "</pre></script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&$title"
VOID = {"meta", "link", "img", "br"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    parent: Element | None = None
    children: list[Element] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def all(self, tag: str = "", **wanted: str) -> list[Element]:
        """Every element below, in the order of the page."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in wanted.items()}
        found = []
        for child in self.children:
            has = all(value in (child.attributes.get(name) or "").split() for name, value in wanted.items())
            found += [child] if has and tag in ("", child.tag) else []
            found += child.all(tag, **{name.replace("-", "_"): value for name, value in wanted.items()})
        return found

    def text(self) -> str:
        return " ".join([*self.words, *(child.text() for child in self.children)]).strip()

    def inside(self, tag: str) -> bool:
        return self.parent is not None and (self.parent.tag == tag or self.parent.inside(tag))


class Page(HTMLParser):
    """The page as a tree. Fails where an element is closed that is not open."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
        self.root = self._at = Element("root", {})
        self.feed(source)
        assert self._at is self.root, f"<{self._at.tag}> is never closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        one = Element(tag, dict(attrs), self._at)
        self._at.children.append(one)
        if tag not in VOID:
            self._at = one

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._at.children.append(Element(tag, dict(attrs), self._at))

    def handle_endtag(self, tag: str) -> None:
        assert self._at.tag == tag, f"</{tag}> in <{self._at.tag}>"
        assert self._at.parent is not None
        self._at = self._at.parent

    def handle_data(self, data: str) -> None:
        if data.strip():
            self._at.words.append(data.strip())


def ports(packets: int = 1_234_567, lost: int = 0) -> dict[int, PortCounters]:
    sizes = {"64": packets // 2, "1024-1518": packets - packets // 2}
    return {
        port: PortCounters(
            *(packets, 64 * packets, packets - lost, 64 * packets, 0, 0),
            tx_by_size=sizes,
            rx_by_size=dict(sizes),
        )
        for port in (0, 1)
    }


def rates(points: int = 40, received: float = 1000.0) -> list[PortRates]:
    return [PortRates(0.25 * (1 + one), 1000.0, 512_000.0, received, 512_000.0) for one in range(points)]


LATENCY = StreamLatency(1.5, 12.0, 900.0, 3.0, 10.0, 40.0, 123.0, 700.0)


@dataclass(frozen=True, kw_only=True)
class Streams(StreamResult):
    """What a run found, with directions that are given and not counted."""

    plan: Plan = field(default_factory=lambda: Plan([0, 1], "1", 10.0, [0, 1]))
    found: Sequence[Direction] = ()
    others: Mapping[int, int | None] = field(default_factory=dict)

    @property
    def directions(self) -> list[Direction]:
        return list(self.found)

    @property
    def other_packets(self) -> dict[int, int | None]:
        return dict(self.others)


def report(**changes: Any) -> Report:
    """A run that passed, in which everything was measured that can be."""
    values: dict[str, Any] = {
        "title": "imix.py",
        "verdict": "all that was offered was sent, and all of it was received",
        "facts": {"When": "2026-11-22 16:00:00 UTC", "Machine": "a & b"},
        "counters": ports(),
        "rates": {port: rates() for port in (0, 1)},
        "checks": [Check("all received", True, "all 7")],
        "reproduce": ["allosaur run imix.py"],
        "profile": "if a < b: pass",
        "found": [Direction(port, 1_234_567, 1_234_567, {1 - port: 1_234_567}, 0) for port in (0, 1)],
        "streams": [StreamCounters(0, ["voice"], 5, 1000, 64_000, 1000, 64_000, {1: 1000}, latency=LATENCY)],
        "elapsed_s": 10.0,
        **changes,
    }
    return page_report(Streams(**taken(values, Streams)), values)


def taken(values: dict[str, Any], of: Any) -> dict[str, Any]:
    """The values that are fields of a class, out of all."""
    return {name: values.pop(name) for name in [*values] if name in {one.name for one in fields(of)}}


def page_report(result: Result, values: dict[str, Any]) -> Report:
    """A report of one load."""
    title, said, ok = values["title"], values["verdict"], values.pop("ok", True)
    verdict = Verdict(ok, said, values.pop("reasons", ()))
    part = replace(result.part(verdict), name=title, **taken(values, Part))
    return Report(title, said, ok, values["facts"], [part], reproduce=values["reproduce"])


FLOWS = FlowCounters(
    SideCounters(1500, 1500, 1500, tx_data_bytes=150_000, rx_data_bytes=48_000_000),
    SideCounters(1500, 1500, 1500, tx_data_bytes=48_000_000, rx_data_bytes=150_000),
    0,
)


TIMES = {"min_us": 90.0, "average_us": 120.0, "p50_us": 100.0, "p90_us": 150.0, "p99_us": 300.0}
TIMES |= {"p99_9_us": 1_200.0, "max_us": 2_500.0, "count": 1_490}
RESET = Outcomes(
    SideOutcomes(completed=1_490, reset=10, unanswered=4),
    SideOutcomes(completed=1_500),
    {"connect": TIMES, "first_byte": {"count": 0}, "program": TIMES},
)


def flow_report(**changes: Any) -> Report:
    one = SideRates(500.0, 400_000.0, 128_000_000.0)
    values: dict[str, Any] = {
        "title": "http.py",
        "verdict": "all flows were answered",
        "facts": {"When": "now", "Server": "local"},
        "counters": FLOWS,
        "rates": [FlowRates(0.25 * (1 + i), 500.0, 500.0, one, one, 50, 40) for i in range(40)],
        "elapsed_s": 10.0,
        "checks": (),
        "reproduce": ["allosaur run http.py"],
        **changes,
    }
    return page_report(FlowResult(plan=FlowPlan(), **taken(values, FlowResult)), values)


def clients_report(ready: int = 100) -> Report:
    """A run of 100 emulated clients."""
    waiting = {"an IPv4 lease (DHCP)": 100 - ready} if ready < 100 else {}
    counters = [Counter("dhcp", "pktRxOffer", ready, "ops", "offers that came")]
    counters += [Counter("dhcp", "pktRxNotify", 3, "ops", "wrong replies", is_error=True)] if waiting else []
    result = EmulationResult(
        clients=Clients(100, 100, ready, waiting, 1),
        counters=counters,
        ready_s=None if waiting else 1.25,
        over_time=[
            (0.0, Clients(100)),
            (1.0, Clients(100, 100, ready // 2)),
            (2.0, Clients(100, 100, ready)),
        ],
        elapsed_s=2.0,
    )
    values = {"title": "dhcp", "verdict": "said", "facts": {"When": "now", "Server": "local"}}
    return page_report(result, {**values, "ok": not waiting, "reproduce": ["allosaur run emu:dhcp"]})


def of_several(failed: bool = False) -> Report:
    """A report of three loads: streams, flows, and a kind that nothing in the report knows."""
    lost = [Direction(0, 1000, 990, {1: 990}, 10)]
    streams = report(ok=not failed, reasons=["10 packets were lost"] * failed, hints=["look there"] * failed)
    if failed:
        streams = report(ok=False, found=lost, reasons=["10 packets were lost"], hints=["look there"])
    clients = Part(
        name="dhcp",
        kind="emulated clients",
        ok=True,
        verdict="all 100 clients are ready",
        headlines=[Headline("Clients ready", "100", "all of them")],
        sections=[
            Section(
                "Clients over time",
                [
                    Chart(
                        "Clients", "at a time", [Series("ready", [(0.0, 0.0), (20.0, 100.0)])], is_whole=True
                    )
                ],
            ),
            Section(
                "Counters", tables=[Table("Counters", [text("name"), number("count")], [["offers", "7"]])]
            ),
        ],
        notes=["Warning: slow"],
    )
    parts = [*streams.parts, *flow_report().parts, clients]
    said = "imix.py failed" if failed else "all loads did what they should"
    return Report(
        "imix.py, http.py and dhcp",
        said,
        not failed,
        {"When": "now", "Server": "local"},
        parts,
        reproduce=["allosaur run"],
    )


def page_of(tmp_path: Path, what: Report) -> Page:
    path = tmp_path / "report.html"
    write_report(path, what)
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture(
    params=[
        "streams",
        "flows",
        "failed streams",
        "failed flows",
        "several",
        "several failed",
        "clients",
        "failed clients",
    ]
)
def page(request: pytest.FixtureRequest, tmp_path: Path) -> Page:
    lost = [Direction(0, 1000, 990, {1: 990}, 10)]
    errors = {"client": {"tcps_rexmttimeo": 676}}
    made: Mapping[str, Report] = {
        "streams": report(),
        "flows": flow_report(latency={0: {"received": 9, **vars(LATENCY)}}),
        "failed streams": report(ok=False, found=lost, hints=["look there"], reasons=["one", "two"]),
        "failed flows": flow_report(
            ok=False,
            counters=FlowCounters(FLOWS.client, FLOWS.server, 3, errors, RESET),
        ),
        "clients": clients_report(),
        "failed clients": clients_report(ready=97),
        "several": of_several(),
        "several failed": of_several(failed=True),
    }
    return page_of(tmp_path, made[request.param])


def headings(page: Page) -> list[str]:
    return [one.text() for one in page.root.all() if one.tag in ("h1", "h2")]


def headlines(page: Page) -> dict[str, str]:
    cells = page.root.all("dl", class_="headlines")[0].children
    return {one.all("dt")[0].text(): one.all("dd")[0].text() for one in cells}


# What everybody needs.


def test_nothing_is_loaded_and_no_script_runs(page: Page) -> None:
    elements = page.root.all()
    assert not [one for one in elements if one.tag in ("script", "iframe", "object", "img", "form")]
    assert not [one for one in elements for name in one.attributes if name.startswith("on") or name == "src"]
    assert all((one.attributes.get("href") or "data:").startswith("data:") for one in elements)
    assert "url(" not in page.source
    assert "@import" not in page.source
    policy = page.root.all("meta", http_equiv="Content-Security-Policy")[0].attributes["content"] or ""
    assert "default-src 'none'" in policy
    assert "script" not in policy


def test_a_page_is_small(page: Page) -> None:
    loads = len(page.root.all("section", class_="part")) or 1
    assert len(page.source) < 50_000 * (1 + loads)


def test_a_page_of_many_ports_streams_and_hours_is_small(tmp_path: Path) -> None:
    counters = {port: ports()[0] for port in range(32)}
    series = [PortRates(one * 9.0, 1e6 + one % 97, 5e9, 1e6, 5e9) for one in range(4000)]
    streams = [
        StreamCounters(one % 32, [f"stream {one}"], one, 1000, 0, 9, lost_packets=one, latency=LATENCY)
        for one in range(2000)
    ]
    big = report(
        counters=counters,
        rates=dict.fromkeys(counters, series),
        found=[Direction(port, 9, 9, {port ^ 1: 9}, 0) for port in counters],
        streams=streams,
        elapsed_s=36_000.0,
    )
    page = page_of(tmp_path, big)
    assert len(page.source) < 400_000
    assert len(page.root.all("figure")) == 18, "16 ports, the percentiles, and the frame sizes"
    assert "100 of 2,000 rows" in page.source
    assert "stream 1999" in page.source, "the stream that lost most is shown"


def test_the_verdict_and_the_numbers_come_first(page: Page) -> None:
    main = page.root.all("main")[0].children
    assert main[0].tag == "h1"
    assert "verdict" in (main[1].attributes["class"] or "")
    assert main[1].all("p", class_="word")[0].text() in ("Passed.", "Failed.")
    assert main[2].children[0].attributes["class"].startswith("headlines")  # type: ignore[union-attr]
    assert main[3].children[0].attributes["class"] == "facts"


def test_no_section_and_no_table_is_empty(page: Page) -> None:
    for section in page.root.all("section"):
        assert len(section.text()) > 8
        heading = section.all("h2")
        assert not heading or len(section.text()) > len(heading[0].text()) + 8
    for table in page.root.all("table"):
        assert table.all("tbody")[0].all("tr")


def test_without_anything_but_counters_there_are_no_empty_parts(tmp_path: Path) -> None:
    one = {0: PortCounters(tx_packets=7, tx_bytes=448)}
    none: dict[str, Any] = dict.fromkeys(("checks", "reproduce", "streams"), ())
    none |= {"title": "a", "facts": {}, "rates": {}, "profile": "", "plan": Plan([0], "1", 1.0)}
    none |= {"elapsed_s": 0.0, "found": [Direction(0, 7, 0)]}
    page = page_of(tmp_path, report(**none, counters=one))
    assert headings(page) == ["a", "Totals"]
    test_no_section_and_no_table_is_empty(page)
    assert headlines(page)["Packets received"] == "not counted no port receives them"
    nothing = page_of(tmp_path, flow_report(title="a", counters=FlowCounters(), rates=[], reproduce=()))
    assert headings(nothing) == ["a", "Totals of flows"]


def test_text_stands_left_and_numbers_right_with_their_headers(page: Page) -> None:
    for table in page.root.all("table"):
        heads = [one.attributes["class"] for one in table.all("thead")[0].all("th")]
        for row in table.all("tbody")[0].all("tr"):
            assert [cell.attributes["class"] for cell in row.children] == heads
            for cell in row.children:
                is_number = re.fullmatch(r"[\d,.]+( (%|µs|ms|s|k|M|G|T)?)?", cell.text())
                if is_number and cell.tag == "td":
                    assert cell.attributes["class"] == "number", cell.text()
    rules = style(page)
    assert "text-align: left" in rules[".text"]
    assert "text-align: right" in rules[".number"]


def style(page: Page) -> dict[str, str]:
    text = page.root.all("style")[0].text()
    return {name.strip(): rule for name, rule in re.findall(r"([^{}]+)\{([^{}]*)\}", text)}


# Several loads on one page.


def test_of_several_loads_each_has_its_part_and_the_first_lines_name_those_that_failed(
    tmp_path: Path,
) -> None:
    page = page_of(tmp_path, of_several(failed=True))
    assert [one.text() for one in page.root.all("h2")][:3] == [
        *("imix.py streams", "http.py flows", "dhcp emulated clients"),
    ]
    first, *of_parts = page.root.all("section", class_="verdict")
    assert [one.all("p", class_="word")[0].text() for one in (first, *of_parts)] == [
        *("Failed.", "Failed.", "Passed.", "Passed."),
    ]
    assert [(one.words, one.all("b")[0].text()) for one in first.all("li")] == [
        *([([": 10 packets were lost."], "imix.py")]),
    ]
    assert "look there" in of_parts[0].text().lower()
    assert headlines(page) == {
        "imix.py (streams)": "Failed Packets lost: 10",
        "http.py (flows)": "Passed Flows opened: 1,500; Flows connected: 1,500",
        "dhcp (emulated clients)": "Passed Clients ready: 100",
    }
    parts = page.root.all("section", class_="part")
    assert [len(part.all("dl", class_="headlines")) for part in parts] == [1, 1, 1]
    assert "Packets lost" in parts[0].text()
    assert [part.all("h3")[0].text() for part in parts] == [
        "Over time",
        "Flows over time",
        "Clients over time",
    ]
    assert "offers" in parts[2].text()
    assert "Warning: slow" in parts[2].text()
    assert not page_of(tmp_path, report()).root.all("section", class_="part")


def test_reasons_of_several_loads_name_their_load(tmp_path: Path) -> None:
    made = of_several(failed=True)
    flows = replace(made.parts[1], ok=False, reasons=["3 flows were reset by the peer"])
    page = page_of(tmp_path, replace(made, parts=[made.parts[0], flows, made.parts[2]]))
    items = page.root.all(class_="verdict")[0].all("li")
    assert [one.all("b")[0].text() for one in items] == ["imix.py", "http.py"], "names stay as they are"
    assert [one.words for one in items] == [
        *([": 10 packets were lost."], [": 3 flows were reset by the peer."]),
    ]


def test_what_holds_of_several_loads_is_said_load_by_load(tmp_path: Path) -> None:
    first = page_of(tmp_path, of_several()).root.all(class_="verdict")[0]
    assert [one.all("b")[0].text() for one in first.all("li")] == ["imix.py", "http.py", "dhcp"]
    whole = [Check("allosaur_port_queue_full > 0", False, "12")]
    page = page_of(tmp_path, replace(of_several(), ok=False, checks=whole))
    assert page.root.all(class_="verdict")[0].all("li")[0].text() == "Allosaur_port_queue_full > 0: 12."
    assert headings(page)[:3] == ["imix.py, http.py and dhcp", "Checks", "imix.py streams"]


def test_charts_of_several_loads_have_one_time_axis(tmp_path: Path) -> None:
    page = page_of(tmp_path, of_several())
    over_time = [one for one in page.root.all("figure") if not one.attributes["id"].endswith(UNTIMED)]  # type: ignore[union-attr]
    assert len(over_time) == 7
    for figure in over_time:
        ticks = [one.text() for one in figure.all("text", class_="tick") if one.text().endswith(" s")]
        assert ticks == ["0 s", "5 s", "10 s", "15 s", "20 s"], "the last load ended after 20 s"


UNTIMED = ("latency-streams", "packets-by-frame-size")


# Readers who do not see, or see no colours.


def test_every_chart_says_what_it_shows(page: Page) -> None:
    identifiers = [one.attributes["id"] for one in page.root.all() if "id" in one.attributes]
    assert len(identifiers) == len(set(identifiers))
    drawings = page.root.all("svg", role="img")
    assert drawings
    for drawing in drawings:
        for name in (drawing.attributes["aria-labelledby"] or "").split():
            assert len(next(one for one in page.root.all() if one.attributes.get("id") == name).text()) > 3
    for decoration in page.root.all("svg"):
        is_part = decoration.inside("svg") or decoration.inside("figure")
        assert is_part or decoration.attributes.get("aria-hidden") == "true"


def test_lines_differ_by_more_than_colour(page: Page) -> None:
    for figure in page.root.all("figure"):
        drawn = [
            one
            for one in figure.all("svg", preserveaspectratio="none")[0].all("path")
            if "area" not in (one.attributes["class"] or "")
        ]
        dashes = {(one.attributes["class"] or "").split()[-1] for one in drawn}
        assert len(dashes) == len(drawn) <= 4
        legend = figure.all("p", class_="legend")
        assert len(drawn) == 1 or {one.attributes["class"] for one in legend[0].all("path")} == {
            one.attributes["class"] for one in drawn
        }


def test_headings_and_tables_are_marked(page: Page) -> None:
    assert page.root.all("html")[0].attributes["lang"] == "en"
    assert len(page.root.all("h1")) == 1
    for table in page.root.all("table"):
        assert table.all("caption")[0].text()
        assert all(one.attributes["scope"] == "col" for one in table.all("thead")[0].all("th"))
        assert all(row.children[0].attributes["scope"] == "row" for row in table.all("tbody")[0].all("tr"))
    for region in page.root.all("div", role="region"):
        assert region.attributes["tabindex"] == "0", "a part that scrolls can be reached by keyboard"
        assert region.attributes["aria-label"]


def colours(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))


def modes(page: Page) -> dict[str, dict[str, str]]:
    blocks = re.findall(r":root \{(.*?)\}", page.root.all("style")[0].text(), re.DOTALL)
    assert len(blocks) == 2
    return {"light": colours(blocks[0]), "dark": colours(blocks[1])}


def contrast(a: str, b: str) -> float:
    """By WCAG 2."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_there_is_enough_contrast(page: Page, mode: str) -> None:
    of = modes(page)[mode]
    text = [("ink", "page"), ("soft", "page"), ("ink", "panel"), ("ok", "ok-panel"), ("bad", "bad-panel")]
    text += [("soft", "bad-panel"), ("ink", "ok-panel"), ("ink", "bad-panel"), ("bad", "page")]
    for front, back in text:
        assert contrast(of[front], of[back]) >= 4.5, (front, back)
    for line in ("c0", "c1", "c2", "c3"):
        assert contrast(of[line], of["page"]) >= 3.0, line


def test_dark_mode_and_paper(page: Page) -> None:
    text = page.root.all("style")[0].text()
    assert set(modes(page)["light"]) == set(modes(page)["dark"])
    assert "@media screen and (prefers-color-scheme: dark)" in text, "paper is always light"
    assert "@media print" in text
    assert "break-inside: avoid" in text
    assert page.root.all("meta", name="color-scheme")[0].attributes["content"] == "light dark"


# What is in it.


def test_headline_numbers_of_streams(tmp_path: Path) -> None:
    lost = [Direction(0, 1000, 990, {1: 990}, 10), Direction(1, 1000, 1000, {0: 1000}, 0)]
    found = headlines(page_of(tmp_path, report(found=lost)))
    assert found["Packets sent"] == "2,000"
    assert found["Packets received"] == "1,990"
    assert found["Packets lost"] == "10 0.5 % of those sent"
    assert found["Not sent in time"] == "0 the load was reached"
    assert found["Latency, p99"].startswith("123 µs")
    assert found["Rate sent, average"].startswith("200 pps")


def test_the_caption_of_a_chart_has_the_rate_of_the_headline(tmp_path: Path) -> None:
    # Of the intervals that are drawn, the average is 201 kpps.
    uneven = {0: [PortRates(0.25 * (1 + i), 201_000.0) for i in range(8)], 1: [PortRates(2.0)]}
    counters = {0: PortCounters(tx_packets=398_000), 1: PortCounters(rx_packets=398_000)}
    sent = [Direction(0, 398_000, 398_000, {1: 398_000}, 0)]
    given = report(found=sent, counters=counters, rates=uneven, elapsed_s=2.0)
    page = page_of(tmp_path, given)
    assert headlines(page)["Rate sent, average"].startswith("199 kpps")
    said = page.root.all(id="rate-0-text")[0].text()
    assert "199 kpps were sent on average" in said


def test_packets_of_others_are_told_apart(tmp_path: Path) -> None:
    page = page_of(tmp_path, report(others={0: 0, 1: 240}))
    assert "packets of others" in page.source
    assert "240" in [one.text() for one in page.root.all("td")]
    assert "packets of others count, too" in page.source, "the charts over time are of ports"
    quiet = page_of(tmp_path, report(others={0: 0, 1: None}))
    assert "packets of others" not in quiet.source


def test_headline_numbers_of_flows(tmp_path: Path) -> None:
    errors = {"client": {"tcps_a": 6, "tcps_rcvbyte": 9000}}
    client = replace(FLOWS.client, tx_messages=5, rx_messages=3)
    server = replace(FLOWS.server, tx_messages=5, rx_messages=5)
    wrong = FlowCounters(client, server, 3, errors, RESET)
    found = headlines(page_of(tmp_path, flow_report(counters=wrong)))
    assert found["Flows completed"] == "1,490 99.3 % of them"
    assert found["Flows opened"] == "1,500"
    assert found["Not opened in time"] == "3 0.2 % of the load"
    assert found["Errors counted"] == "6", "bytes are no events"
    assert found["UDP messages lost"] == "2"
    assert found["Flows a second, average"] == "150 38.5 Mbps of data"


def test_headline_numbers_of_emulated_clients_and_what_they_wait_for(tmp_path: Path) -> None:
    fine = page_of(tmp_path, clients_report())
    assert headlines(fine) == {
        "Clients": "100 of 100",
        "Clients ready": "100 100 % of them",
        "Errors counted": "0 all counters are zero",
        "All were ready after": "1.25 s",
    }
    assert headings(fine)[1:3] == ["Clients over time", "Counters of plugins"]
    page = page_of(tmp_path, clients_report(ready=97))
    assert headlines(page)["Clients ready"] == "97 97 % of them"
    assert headlines(page)["Errors counted"] == "3"
    rows = [[cell.text() for cell in row.children] for row in page.root.all("tr")]
    assert ["an IPv4 lease (DHCP)", "3"] in rows
    assert ["dhcp.pktRxNotify", "wrong replies", "3"] in rows
    assert "100 were there at the end, 97 were ready" in page.root.all(id="clients-text")[0].text()


def test_how_flows_ended_and_how_long_they_took(tmp_path: Path) -> None:
    counters = FlowCounters(FLOWS.client, FLOWS.server, 0, {}, RESET)
    rates = [FlowRates(1.0, failed_flows=0), FlowRates(2.0, failed_flows=10)]
    meaning, hint = _hints.meaning("reset"), _hints.hint("reset")
    made = flow_report(counters=counters, rates=rates)
    page = page_of(tmp_path, made)
    rows = [[cell.text() for cell in row.children] for row in page.root.all("tr")]
    assert ["completed flows", "1,490", "1,500"] in rows
    assert ["reset by the peer", "10", "0"] in rows
    assert [meaning, "clients", "10", hint, "reset"] in rows
    (connect,) = (row for row in rows if row[0] == "connect")
    assert connect[1:] == ["1,490", "90 µs", "120 µs", "100 µs", "150 µs", "300 µs", "1.2 ms", "2.5 ms"]
    assert not [row for row in rows if row[0] == "first byte"], "of what never came there is no time"
    assert "10 flows failed, 0 errors were counted" in page.root.all(id="errors-text")[0].text()
    assert "How flows ended" not in headings(page_of(tmp_path, flow_report())), "nobody told it"


def test_rates_are_averages_and_no_noise_of_sampling(tmp_path: Path) -> None:
    uneven = [FlowRates(0.25 * (1 + i), client=SideRates(13_080.0 if i == 7 else 9900.0)) for i in range(8)]
    counted = FlowCounters(SideCounters(20_000, 20_000), SideCounters(20_000, 20_000), 0)
    page = page_of(tmp_path, flow_report(counters=counted, rates=uneven, elapsed_s=2.0))
    said = page.root.all(id="flows-text")[0].text()
    assert "clients connected 10 k a second on average" in said
    assert "13" not in said


def test_checks_that_failed_stand_before_everything(tmp_path: Path) -> None:
    checks = [*(Check(f"check {one}", True, "fine") for one in range(22)), Check("the last", False, "3 lost")]
    page = page_of(tmp_path, report(ok=False, checks=checks))
    assert headings(page)[:2] == ["imix.py", "Checks"]
    folded = [one for one in page.root.all("tr") if one.inside("details")]
    assert not any("the last" in row.text() for row in folded)
    assert page.root.all("summary")[0].text() == "The other 22 checks passed"
    fine = page_of(tmp_path, report(checks=checks[:22]))
    assert headings(fine).index("Checks") > headings(fine).index("Totals")
    assert "All 22 checks passed" in fine.root.text()


def test_reasons_are_a_list_when_there_are_several(tmp_path: Path) -> None:
    several = page_of(tmp_path, report(ok=False, reasons=["10 packets were lost", "load not reached"]))
    verdict = several.root.all(class_="verdict")[0]
    assert [one.text() for one in verdict.all("li")] == ["10 packets were lost.", "Load not reached."]
    one = page_of(tmp_path, report(ok=False, reasons=["10 were lost"], verdict="10 were lost"))
    assert not one.root.all(class_="verdict")[0].all("li")


def test_frame_sizes_only_when_there_are_several(tmp_path: Path) -> None:
    assert "Frame sizes" in headings(page_of(tmp_path, report()))
    one = {0: PortCounters(10, 640, 10, 640, tx_by_size={"64": 10, "65-127": 0})}
    assert "Frame sizes" not in headings(page_of(tmp_path, report(counters=one)))


def test_the_command_and_the_profile_are_there(tmp_path: Path) -> None:
    page = page_of(tmp_path, report())
    assert [one.text() for one in page.root.all("pre")] == ["allosaur run imix.py", "if a < b: pass"]


def test_no_word_of_a_user_becomes_part_of_the_page(tmp_path: Path) -> None:
    streams = [StreamCounters(0, [HOSTILE], 5, 1000, rx_packets=9, lost_packets=1, latency=LATENCY)]
    made: Sequence[Report] = [
        report(
            **dict.fromkeys(("title", "verdict", "profile"), HOSTILE),
            facts={HOSTILE: HOSTILE, "When": HOSTILE},
            checks=[Check(HOSTILE, False, HOSTILE)],
            **{name: [HOSTILE, HOSTILE] for name in ("reproduce", "notes", "hints", "reasons")},
            streams=streams,
            found=[Direction(0, 9, 8, {1: 8}, 1, ungrouped=[HOSTILE])],
        ),
        flow_report(
            **dict.fromkeys(("title", "verdict", "profile"), HOSTILE),
            facts={HOSTILE: HOSTILE},
            groups={HOSTILE: FLOWS},
            counters=FlowCounters(FLOWS.client, FLOWS.server, 0, {"client": {HOSTILE: 1}}),
            reproduce=[HOSTILE],
        ),
    ]
    for one in made:
        page = page_of(tmp_path, one)
        test_nothing_is_loaded_and_no_script_runs(page)
        assert "alert(1)" in page.root.text()
        assert page.root.all("h1")[0].text() == HOSTILE
