"""Event streams are read as their specification says, however their bytes come."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.framing.event_stream import (
    EventReader,
    EventTooLong,
    SseEvent,
    SseParser,
    encode_comment,
    encode_event,
)


def parsed(*chunks: bytes) -> list[SseEvent]:
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


def test_data_of_one_event_ends_at_the_blank_line() -> None:
    assert parsed(b"data: one\n\ndata: two\n") == [SseEvent("one")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_with_lf_crlf_or_cr(end: bytes) -> None:
    stream = b"id: e-1" + end + b"data: a" + end + b"data:  b" + end + end + b"data: c" + end + end
    assert parsed(stream) == [SseEvent("a\n b", id="e-1"), SseEvent("c", id="e-1")]


def test_crlf_split_between_two_chunks_is_one_line_end() -> None:
    assert parsed(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == [SseEvent("a\nb")]


def test_cr_inside_a_chunk_takes_no_lf_from_the_next() -> None:
    assert parsed(b"data: a\rdata", b"\n\n") == [SseEvent("a\n")]


def test_empty_chunk_between_cr_and_lf_changes_nothing() -> None:
    assert parsed(b"data: a\r", b"", b"\n\r", b"", b"\n") == [SseEvent("a")]


def test_cr_alone_at_the_end_of_a_chunk_ends_its_line_at_once() -> None:
    assert parsed(b"data: a\r\r") == [SseEvent("a")]


def test_byte_order_mark_at_the_start_is_skipped_and_elsewhere_is_text() -> None:
    assert parsed(b"\xef", b"\xbb", b"\xbfdata: a\n\n") == [SseEvent("a")]
    assert parsed(b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n") == [SseEvent("a")]
    assert parsed(b"\xef\xbbdata: a\n\n") == []


def test_comments_and_unknown_fields_say_nothing() -> None:
    assert parsed(b": awake\n\nretry: 5\nfoo: bar\nfoo\n\ndata: a\n\n") == [SseEvent("a")]


def test_field_without_colon_has_an_empty_value() -> None:
    assert parsed(b"data\n\n", b"data\ndata\n\n") == [SseEvent(""), SseEvent("\n")]


def test_only_one_leading_space_belongs_to_the_syntax() -> None:
    assert parsed(b"data:a\n\ndata:  a: b\n\n") == [SseEvent("a"), SseEvent(" a: b")]


def test_event_name_holds_for_one_event_and_id_for_all_that_follow() -> None:
    assert parsed(b"event: x\nid: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n") == [
        SseEvent("a", "x", "7"),
        SseEvent("b", "message", "7"),
        SseEvent("c", "message", ""),
    ]


def test_id_with_nul_is_ignored() -> None:
    assert parsed(b"id: 1\nid: 2\x00\ndata: a\n\n") == [SseEvent("a", id="1")]


def test_event_without_data_is_none_and_forgets_its_name() -> None:
    assert parsed(b"event: x\n\ndata: a\n\n") == [SseEvent("a")]


def test_bytes_that_are_no_utf_8_become_replacement_characters() -> None:
    assert parsed(b"data: a\xffb\n\n") == [SseEvent("a�b")]


def test_character_split_between_chunks_is_whole() -> None:
    assert parsed(b"data: \xe2\x82", b"\xac\n\n") == [SseEvent("€")]


def test_other_unicode_line_separators_are_text() -> None:
    assert parsed("data: a\u2028b\x0bc\x85d\n\n".encode()) == [SseEvent("a\u2028b\x0bc\x85d")]


def test_endless_line_is_refused() -> None:
    parser = SseParser(max_event_bytes=10)
    assert parser.feed(b"data: 1234") == []
    with pytest.raises(EventTooLong, match="more than 10 bytes"):
        parser.feed(b"5")


def test_endless_event_of_short_lines_is_refused() -> None:
    parser = SseParser(max_event_bytes=10)
    assert parser.feed(b"data\n" * 10) == []
    with pytest.raises(EventTooLong, match="more than 10 bytes"):
        parser.feed(b"data\n")


def test_many_short_events_are_not_counted_together() -> None:
    parser = SseParser(max_event_bytes=10)
    assert parser.feed(b"data: 123\n\n" * 20) == [SseEvent("123")] * 20


LINES = st.sampled_from(
    [
        b"data: a",
        b"data",
        b": x",
        b"id: e-9",
        b"event: n",
        b"",
        b"\xef\xbb\xbfdata: b",
        "data: €é".encode(),
    ]
)


@given(
    st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r", b"\r\n"])), max_size=12),
    st.lists(st.integers(0, 120), max_size=12),
)
def test_any_split_of_the_bytes_gives_the_same_events(
    lines: list[tuple[bytes, bytes]], cuts: list[int]
) -> None:
    stream = b"".join(line + end for line, end in lines)
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[a:b] for a, b in pairwise(places)]
    whole = parsed(stream)
    assert parsed(*pieces) == whole
    assert parsed(*(stream[at : at + 1] for at in range(len(stream)))) == whole


@given(st.binary(max_size=200))
def test_any_bytes_end_in_events(stream: bytes) -> None:
    for event in parsed(stream):
        assert isinstance(event.data, str)


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))),
    st.sampled_from(["\n", "\r", "\r\n"]),
)
def test_what_was_sent_as_data_arrives(data: list[str], end: str) -> None:
    stream = "".join(f"data: {line}{end}" for line in data) + end
    assert parsed(stream.encode()) == ([SseEvent("\n".join(data))] if data else [])


def ended(*chunks: bytes) -> list[SseEvent]:
    """Return what the end of a stream completes."""
    parser = SseParser()
    for chunk in chunks:
        parser.feed(chunk)
    return parser.end()


def test_the_end_of_the_stream_ends_its_last_event() -> None:
    assert ended(b"data: a\n\ndata: b\n") == [SseEvent("b", is_complete=False)]
    assert ended(b"data: a\ndata: b") == [SseEvent("a\nb", is_complete=False)]


def test_a_stream_that_ends_behind_a_blank_line_has_nothing_left() -> None:
    assert ended(b"data: a\n\n") == []
    assert ended(b": a comment") == []
    assert ended(b"") == []


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def test_reader_yields_the_events_of_all_chunks_in_order() -> None:
    reader = EventReader(chunks(b"data: a\n", b"\ndata: b\n\nda", b"ta: c\n\n"))
    assert [event async for event in reader] == [SseEvent("a"), SseEvent("b"), SseEvent("c")]


async def test_reader_yields_the_event_that_the_end_cuts_off_and_says_so() -> None:
    reader = EventReader(chunks(b"data: a\n\n", b"id: 7\ndata: b"))
    assert [event async for event in reader] == [
        SseEvent("a"),
        SseEvent("b", id="7", is_complete=False),
    ]


async def test_reader_stays_at_the_end() -> None:
    reader = EventReader(chunks())
    for _ in range(2):
        with pytest.raises(StopAsyncIteration):
            await anext(reader)


async def test_reader_refuses_an_endless_event() -> None:
    reader = EventReader(chunks(b"data: a\n\n", b"data: 12345"), max_event_bytes=10)
    assert await anext(reader) == SseEvent("a")
    with pytest.raises(EventTooLong, match="more than 10 bytes"):
        await anext(reader)


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({}, b"data: {}\n\n"),
        ({"name": "chat"}, b"event: chat\ndata: {}\n\n"),
        ({"event_id": "e-1"}, b"id: e-1\ndata: {}\n\n"),
        ({"name": "a", "event_id": ""}, b"event: a\nid:\ndata: {}\n\n"),
    ],
)
def test_event_has_a_name_and_an_id_where_they_are_given(
    options: dict[str, str], sent: bytes
) -> None:
    """An empty id clears the earlier one (HTML, 9.2.6)."""
    assert encode_event(b"{}", **options) == sent


def test_a_written_event_is_read_again_and_a_comment_is_not() -> None:
    stream = encode_event(b"{}", name="end", event_id="e-1") + encode_comment("alive")
    assert parsed(stream) == [SseEvent("{}", "end", "e-1")]
