"""Text in pieces: wherever it is cut, what goes out is what the whole would have been."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from arp.redact.redactor import Redactor, known_shapes
from arp.redact.settings import Redaction
from arp.redact.stream import CONTEXT, SecretStream
from tests.redact.test_redactor import ORDINARY, SECRETS


class Told:
    """A text that goes out piece by piece, as a session does it."""

    def __init__(self, redactor: Redactor | None = None) -> None:
        self.redactor = redactor or known_shapes()
        self.stream: SecretStream | None = None
        self.out = ""
        self.found: dict[str, int] = {}

    def say(self, *pieces: str) -> str:
        """Return what went out of these."""
        begin = len(self.out)
        for piece in pieces:
            if self.stream is None and not self.redactor.has_sign(piece):
                self.out += piece
                continue
            self.stream = self.stream or SecretStream(self.redactor)
            self.out += self.stream.admit(piece, self.out[-CONTEXT:])
            self._count()
            if not self.stream.is_busy:
                self.stream = None
        return self.out[begin:]

    def finish(self) -> str:
        if self.stream is not None:
            self.out += self.stream.finish(self.out[-CONTEXT:])
            self._count()
        return self.out

    def _count(self) -> None:
        assert self.stream is not None
        for rule, count in self.stream.take_found().items():
            self.found[rule] = self.found.get(rule, 0) + count


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize(("text", "cleaned", "rule"), SECRETS)
def test_a_secret_in_pieces_is_taken_out_as_if_it_were_whole(
    text: str, cleaned: str, rule: str, size: int
) -> None:
    told = Told()
    told.say(*(text[start : start + size] for start in range(0, len(text), size)))
    assert (told.finish(), told.found) == (cleaned, {rule: 1})


@pytest.mark.parametrize("size", [1, 4, 9])
@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_in_pieces_stays_as_it_is(text: str, size: int) -> None:
    told = Told()
    told.say(*(text[start : start + size] for start in range(0, len(text), size)))
    assert (told.finish(), told.found) == (text, {})


PIECES = st.sampled_from(
    [text for text, _, _ in SECRETS]
    + ORDINARY
    + ["sk-", "eyJ", "-", "=", "password", "://", "Bearer ", "token=", '"', "\n", "x", "A", " "]
)


BEGINS_AS_A_PORT = re.compile(r"://[^\s/:@]*:\d{1,5}[^\s/@]*@")
"""A password whose first digits look like a port until more follows: they are not held back."""


@given(
    st.lists(PIECES, min_size=1, max_size=5), st.lists(st.integers(1, 20), min_size=1), st.data()
)
def test_any_cuts_give_what_the_whole_gives(
    parts: list[str], sizes: list[int], data: st.DataObject
) -> None:
    text = data.draw(st.sampled_from([" ", "", "\n"])).join(parts)
    assume(BEGINS_AS_A_PORT.search(text) is None)
    told, start, turn = Told(), 0, 0
    while start < len(text):
        size = sizes[turn % len(sizes)]
        told.say(text[start : start + size])
        start, turn = start + size, turn + 1
    whole, found = known_shapes().text(text)
    assert (told.finish(), told.found) == (whole, found)


def test_the_lead_goes_out_at_once_and_the_secret_never() -> None:
    told = Told()
    assert told.say("my key: ghp_") == "my key: ghp_"
    assert told.say("abcdefghij") == ""
    assert told.say("klmnopqrst") == ""
    assert told.say("uvwxyz012345") == "[redacted]"
    assert told.say("6789") == ""
    assert told.say(" ok") == " ok"
    assert told.stream is None, "nothing is left to follow"


def test_what_turns_out_to_be_none_goes_out_whole() -> None:
    told = Told()
    assert told.say("a sk-lea", "rn") == "a sk-"
    assert told.say(" model") == "learn model"


def test_an_address_does_not_wait_for_what_follows() -> None:
    told = Told()
    assert told.say("see http://127.0.0.1:8080") == "see http://127.0.0.1:8080"
    assert Told().say("see https://example.com") == "see https://example.com"


def test_something_else_between_does_not_let_the_rest_of_a_secret_out() -> None:
    """A tool begins in the middle of a key: what was held had to go first."""
    told = Told()
    told.say("ghp_abcdefgh")
    assert told.finish() == "ghp_abcdefgh"
    told.out = ""  # a new part of the output: nothing stands before it
    assert told.say("ijklmnopqrstuvwxyz0123", " end") == "[redacted] end"
    inside = Told()
    inside.say("ghp_abcdefghijklmnopqrstuvwxyz012345")
    inside.finish()
    inside.out = ""
    assert inside.say("6789abc end") == " end"


def test_a_known_secret_shows_three_characters_at_most() -> None:
    redactor = Redactor(Redaction(secrets=("hunter2supersecret",)))
    for size in range(1, 19):
        told = Told(redactor)
        text = "it is hunter2supersecret, yes"
        told.say(*(text[start : start + size] for start in range(0, len(text), size)))
        assert told.finish().replace("[redacted]", "") in [
            f"it is {'hunter2supersecret'[:shown]}, yes" for shown in range(4)
        ]
        assert told.found == {"known-secret": 1}


def test_the_beginning_of_a_known_secret_that_goes_on_otherwise_goes_out() -> None:
    told = Told(Redactor(Redaction(secrets=("hunter2supersecret",))))
    assert told.say("a hunter") == "a "
    assert told.say("s moon") == "hunters moon"


def test_little_is_held_however_long_a_secret_is() -> None:
    told = Told()
    told.say("-----BEGIN PRIVATE KEY-----\n")
    for _ in range(1000):
        told.say("MIIEpAIBAAKCAQEA1234567890abcdef0123456789\n")
        assert told.stream is not None
        assert len(told.stream.held) < 200
    told.say("-----END PRIVATE KEY-----\nafter")
    assert told.finish() == (
        "-----BEGIN PRIVATE KEY-----[redacted]-----END PRIVATE KEY-----\nafter"
    )


def test_what_went_out_before_is_not_counted_again() -> None:
    """Whoever owns the text tells what stands before a piece, be it what it may."""
    stream = SecretStream(Redactor(Redaction(secrets=("hunter2supersecret",))))
    assert stream.admit("on and ", "it was hunter2supersecret, ") == "on and "
    assert stream.take_found() == {}
