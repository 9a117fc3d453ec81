"""`Signer`: signatures of texts and bytes that come back from an untrusted place."""

from __future__ import annotations

import hmac


class Signer:
    """Signs content with HMAC-SHA-256, and checks its own signatures.

    Args:
        key: Secret key; whoever has it can sign.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def signature(self, content: bytes) -> str:
        """Return the signature of a content, as 64 hexadecimal digits."""
        return hmac.new(self._key, content, "sha256").hexdigest()

    def is_valid(self, content: bytes, signature: str) -> bool:
        """Return whether a signature belongs to a content, in a time that does not depend on it."""
        return hmac.compare_digest(self.signature(content).encode(), signature.encode())

    def sign(self, text: str) -> str:
        """Return a text with its signature, for `verified`."""
        return f"{text}.{self.signature(text.encode())}"

    def verified(self, signed: str) -> str | None:
        """Return the text of `sign`; `None` if its signature is not ours."""
        text, _, signature = signed.rpartition(".")
        return text if self.is_valid(text.encode(), signature) else None
