"""A signature fits one content and one key."""

from __future__ import annotations

import pytest

from arp.net.signer import Signer

SIGNER = Signer(b"key")


def test_signature_is_hmac_sha_256() -> None:
    """RFC 4231, case 2."""
    signature = Signer(b"Jefe").signature(b"what do ya want for nothing?")
    assert signature == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"


@pytest.mark.parametrize("text", ["", "a", "a.b.c", "é€"])
def test_signed_text_is_verified(text: str) -> None:
    assert SIGNER.verified(SIGNER.sign(text)) == text


def test_changed_text_or_signature_is_refused() -> None:
    signed = SIGNER.sign("user.1")
    for wrong in ("", ".", "user.1", signed.replace("1", "2", 1), signed[:-1], signed + "0"):
        assert SIGNER.verified(wrong) is None
    assert not SIGNER.is_valid(b"user", "")
    assert not SIGNER.is_valid(b"user", "é")


def test_signature_of_another_key_is_refused() -> None:
    assert SIGNER.verified(Signer(b"other").sign("user")) is None
