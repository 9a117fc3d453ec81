"""`Signer`: signatures of texts and bytes that return from an untrusted place."""

from __future__ import annotations

import hmac


class Signer:
    """Signs content with HMAC-SHA-256, and checks its own signatures.

    Args:
        key: Secret key. Everyone who knows it can sign.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def signature(self, content: bytes) -> str:
        """Return the signature of some bytes, as 64 hexadecimal digits."""
        return hmac.new(self._key, content, "sha256").hexdigest()

    def is_valid(self, content: bytes, signature: str) -> bool:
        """Return whether a signature is valid. The comparison takes constant time."""
        return hmac.compare_digest(self.signature(content).encode(), signature.encode())

    def sign(self, text: str) -> str:
        """Return a text followed by its signature; `verified` reads it."""
        return f"{text}.{self.signature(text.encode())}"

    def verified(self, signed: str) -> str | None:
        """Return the text that was signed; `None` if the signature is not valid."""
        text, _, signature = signed.rpartition(".")
        return text if self.is_valid(text.encode(), signature) else None
