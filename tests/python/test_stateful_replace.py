"""Fields of applications in stateful programs: headers and patterns, one text or one for each connection."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from allosaur import (
    ASTFCapInfo,
    ASTFError,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)
from allosaur.stateful._commands import BufferCmd

REQUEST = (
    b"POST /a?id=12 HTTP/1.1\r\nHost: one.example\r\nuser-agent:  old\r\n"
    b"Content-Length: 12\r\n\r\nHost: inside"
)
NEXT = b"GET /b?id=345 HTTP/1.1\r\nUser-Agent: old\r\nHost: two.example\r\n\r\n"


def pools() -> ASTFIPGen:
    return ASTFIPGen(ASTFIPGenDist(["16.0.0.1", "16.0.0.9"]), ASTFIPGenDist(["48.0.0.1", "48.0.0.9"]))


def template(client: ASTFProgram, server: ASTFProgram) -> ASTFTemplate:
    return ASTFTemplate(
        ASTFTCPClientTemplate(program=client, ip_gen=pools()), ASTFTCPServerTemplate(program=server)
    )


def exchange() -> tuple[ASTFProgram, ASTFProgram]:
    """Two requests in one buffer, then one of its own; the server counts the bytes."""
    client, server = ASTFProgram(), ASTFProgram()
    client.send(REQUEST + NEXT)
    client.recv(2)
    client.send(NEXT, size=1000, fill="z")
    server.recv(len(REQUEST))
    server.recv(len(NEXT))
    server.send(b"ok")
    server.recv(1000)
    return client, server


def sent(program: ASTFProgram) -> list[bytes]:
    return [command.data for command in program.commands if isinstance(command, BufferCmd)]


def received(program: ASTFProgram) -> list[int]:
    return [command.fields["min_bytes"] for command in program.commands if command.word == "rx"]


def test_a_header_becomes_one_text_everywhere() -> None:
    client, server = exchange()
    assert template(client, server).replace_header("User-Agent", "a longer agent") == 3
    changed = [text.replace(b"old", b"a longer agent") for text in (REQUEST, NEXT)]
    assert sent(client) == [changed[0] + changed[1], changed[1]]
    more = len("a longer agent") - 3
    size = 1000 + more
    lengths = [len(changed[0]), len(changed[1]), size]
    assert received(server) == [lengths[0], sum(lengths[:2]), sum(lengths)]
    assert client.total_send_bytes == len(changed[0] + changed[1]) + size


def test_bodies_are_no_headers() -> None:
    client, _ = exchange()
    assert client.replace_header("Host", b"x.example") == 3
    assert sent(client)[0].count(b"Host: x.example") == 2
    assert b"Host: inside" in sent(client)[0]


def test_without_a_peer_only_the_sender_changes() -> None:
    client, server = exchange()
    before = received(server)
    client.replace_header("Host", "other")
    assert received(server) == before


def test_a_pattern_or_its_group_is_changed() -> None:
    client, server = exchange()
    made = template(client, server)
    assert made.replace_pattern(rb"id=(\d+)", "9") == 3
    assert [text.count(b"id=9 ") for text in sent(client)] == [2, 1]


def test_a_list_is_described_for_the_server() -> None:
    client, server = exchange()
    made = template(client, server)
    before = received(server)
    assert made.replace_header("User-Agent", ["old", "new", "wow"], distribution="seq") == 3
    assert received(server) == before
    fields = ASTFProfile(pools(), templates=made).to_json()
    assert fields["draw_lists"] == [
        {
            "distribution": "seq",
            "values": [base64.b64encode(text).decode() for text in (b"old", b"new", b"wow")],
        }
    ]
    commands = [command for command in fields["program_list"][0]["commands"] if command["name"] == "tx"]
    for command, original in zip(commands, (REQUEST + NEXT, NEXT), strict=True):
        buffer = fields["buf_list"][command["buf_index"]]
        data = base64.b64decode(buffer if isinstance(buffer, str) else buffer["base"])
        for draw in command["draw"]:
            assert draw["list"] == 0
            assert data[draw["offset"] : draw["offset"] + 3] == b"old"
        assert len(command["draw"]) == original.count(b"old")


def test_values_of_a_header_get_the_same_length() -> None:
    client, server = exchange()
    made = template(client, server)
    made.replace_header("Host", ["a.example", "long.example"])
    fields = ASTFProfile(pools(), templates=made).to_json()
    values = [base64.b64decode(value) for value in fields["draw_lists"][0]["values"]]
    assert values == [b"a.example   ", b"long.example"]
    assert sent(client)[1].count(b"Host: a.example   \r\n") == 1


def test_values_of_a_pattern_need_a_pad() -> None:
    client, _ = exchange()
    with pytest.raises(ASTFError, match="different lengths, give pad="):
        client.replace_pattern(rb"id=(\d+)", ["1", "22"])
    client.replace_pattern(rb"id=(\d+)", ["1", "22"], pad="0")
    assert sent(client)[1].startswith(b"GET /b?id=10 HTTP")


def test_draws_move_with_what_is_changed_before_them() -> None:
    client, server = exchange()
    made = template(client, server)
    made.replace_header("Host", ["aaa", "bbb"])
    made.replace_pattern(rb"id=(\d+)", "a much longer number")
    made.replace_header("User-Agent", ["c", "d"])
    fields = ASTFProfile(pools(), templates=made).to_json()
    for command in fields["program_list"][0]["commands"]:
        if command["name"] != "tx":
            continue
        buffer = fields["buf_list"][command["buf_index"]]
        data = base64.b64decode(buffer if isinstance(buffer, str) else buffer["base"])
        for draw in command["draw"]:
            value = base64.b64decode(fields["draw_lists"][draw["list"]]["values"][0])
            assert data[draw["offset"] : draw["offset"] + len(value)] == value
            assert data[draw["offset"] - 2 : draw["offset"]] in (b": ", b"  ")


def test_a_second_change_of_the_same_field_wins() -> None:
    client, server = exchange()
    made = template(client, server)
    made.replace_header("Host", ["aaa", "bbb"])
    made.replace_header("Host", "fixed")
    assert "draw_lists" not in ASTFProfile(pools(), templates=made).to_json()


def looped(clear: bool, around: bool = False) -> ASTFTemplate:
    """A request that is sent ten times."""
    client, server = ASTFProgram(), ASTFProgram()
    if around:
        client.send("hello")
        server.recv(5)
    client.set_var("n", 10)
    client.set_label("again")
    client.send(NEXT)
    client.jmp_nz("n", "again")
    if clear:
        server.set_var("n", 10)
        server.set_label("again")
        server.recv(len(NEXT), clear=True)
        server.jmp_nz("n", "again")
    else:
        server.recv(10 * len(NEXT))
    return template(client, server)


@pytest.mark.parametrize("clear", [True, False])
def test_loops_are_counted_right(clear: bool) -> None:
    made = looped(clear)
    made.replace_header("Host", "another.example")
    (length,) = (len(text) for text in sent(made.client_template.program))
    assert length == len(NEXT) + 4
    assert received(made.server_template.program) == [length if clear else 10 * length]


def test_where_a_count_is_not_clear_nothing_changes() -> None:
    made = looped(clear=False, around=True)
    with pytest.raises(ASTFError, match="not clear how many bytes the peer waits for"):
        made.replace_header("Host", "another.example")
    assert sent(made.client_template.program) == [b"hello", NEXT]
    assert received(made.server_template.program) == [5, 5 + 10 * len(NEXT)]


def test_a_capture_is_changed_as_it_is_loaded() -> None:
    changed = ASTFCapInfo(
        file="http_browsing.pcap",
        headers={"User-Agent": ["first agent", "second agent"], "Host": "www.example"},
        patterns={rb"/(style)\.css": "fashion"},
    )
    profile = ASTFProfile(pools(), cap_list=changed)
    client = profile.templates[0].client_template.program
    server = profile.templates[0].server_template.program
    assert [text.count(b"Host: www.example\r\n") for text in sent(client)] == [1, 1, 1]
    assert [text.count(b"GET /fashion.css ") for text in sent(client)] == [0, 1, 0]
    totals = [sum(map(len, sent(client)[: number + 1])) for number in range(3)]
    assert received(server) == totals
    assert len(profile.to_json()["draw_lists"]) == 1


def test_messages_are_changed_too() -> None:
    client, server = ASTFProgram(stream=False), ASTFProgram(stream=False)
    client.send_msg("INVITE sip:a SIP/2.0\r\nFrom: me\r\n\r\n")
    server.recv_msg(1)
    assert template(client, server).replace_header("From", "somebody else") == 1
    assert sent(client) == [b"INVITE sip:a SIP/2.0\r\nFrom: somebody else\r\n\r\n"]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "not there": ({"name": "Cookie", "values": "x"}, "header 'Cookie' is in none of the 2 buffers"),
    "no name": ({"name": "User Agent", "values": "x"}, "name of a header"),
    "no values": ({"name": "Host", "values": []}, "0 values, give 1 to 65535"),
    "no text": ({"name": "Host", "values": [5]}, "give bytes or text"),
    "a line end": ({"name": "Host", "values": "a\r\nb: c"}, "a line end"),
    "an order": ({"name": "Host", "values": "x", "distribution": "round"}, "give 'rand' or 'seq'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_changed_is_refused(name: str) -> None:
    arguments, words = REFUSED[name]
    with pytest.raises(ASTFError, match=words):
        exchange()[0].replace_header(**arguments)


def test_there_are_limits() -> None:
    client, server = ASTFProgram(), ASTFProgram()
    client.send("x" * 300)
    with pytest.raises(ASTFError, match="would have 300 places that are drawn, 255 is the most"):
        client.replace_pattern("x", ["a", "b"])
    many = ASTFProgram()
    many.send(" ".join(f"<{number:03}>" for number in range(257)))
    for number in range(257):
        if number < 255:
            many.replace_pattern(f"<({number:03})>", [f"{number:03}", f"{number + 1:03}"])
    assert len(many.to_json()["commands"][0]["draw"]) == 255
    for number in range(3):
        other = ASTFProgram()
        other.send("<aaa>")
        other.replace_pattern("aaa", ["aaa", f"b{number:02}"])
        many.commands += other.commands
    with pytest.raises(ASTFError, match="at most 256 lists"):
        template(many, server)
        many.to_json()


def test_what_is_no_pattern_is_refused() -> None:
    client, server = exchange()
    with pytest.raises(ASTFError, match="no regular expression"):
        client.replace_pattern("(", "x")
    with pytest.raises(ASTFError, match="give 'c' for the client"):
        template(client, server).replace_pattern("x", "y", side="x")
