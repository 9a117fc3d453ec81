"""`CallbackSender`: sends the outcome of a task to its `callback_url`.

Theory of operation. The URL is not trusted. It is checked when the task is requested, and again at
the socket with each attempt (`addresses`), so that no private address, redirect or DNS rebinding
gets through. The body is the message `tool_ready` or `tool_error` of the interface document. A
failed delivery is retried if the receiver may be temporarily unavailable, and not if it refuses. If
a secret is set, each request is signed, so that the receiver can detect forgeries
(`verify_callback`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import httpx
import msgspec

from arp.net.signer import Signer
from arp.tools.build.messages import Outcome, message_with
from arp.tools.clock import SYSTEM_CLOCK, Clock
from arp.tools.errors import ToolAgentError
from arp.tools.run.addresses import AddressRules, check_url, checked_client
from arp.tools.settings import LiveSettings

logger = logging.getLogger(__name__)

SIGNATURE: Final = "x-tool-agent-signature"
"""`t=SECONDS,v1=HEX`: HMAC-SHA-256 of `SECONDS.BODY` with the secret."""
MAX_AGE_S: Final = 300
"""Greatest age of a signed callback in seconds, because an older one may be a replay."""
ATTEMPT_S: Final = 10.0
"""Time limit of one attempt, in seconds."""
FIRST_PAUSE_S: Final = 1.0
"""Pause before the second attempt, in seconds; it doubles with each further one."""
MAX_PAUSE_S: Final = 60.0
MAX_URL: Final = 2_000
"""Maximum length of a URL in characters."""
_TRY_AGAIN: Final = frozenset({408, 425, 429})
"""Statuses below 500 after which another attempt may succeed."""


class CallbackSender:
    """Delivers outcomes.

    Args:
        settings: Number of attempts, the secret, and the private hosts that are allowed.
        clock: Source of the time.
        pause: Waits between attempts.
    """

    def __init__(
        self,
        settings: LiveSettings,
        clock: Clock = SYSTEM_CLOCK,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._pause = pause

    def check(self, url: str) -> None:
        """Check a URL as far as possible without network access.

        Raises:
            ToolAgentError: The URL can never be called.
        """
        if len(url) > MAX_URL:
            raise ToolAgentError(f"callback_url: more than {MAX_URL} characters")
        check_url(url, self._rules())

    async def deliver(self, url: str, outcome: Outcome) -> str:
        """Send an outcome; return `delivered`, or the reason why it was not delivered.

        Cancel: Safe; the receiver may have it.
        """
        body = msgspec.json.encode(message_with(outcome))
        pause, result = FIRST_PAUSE_S, "not tried"
        for attempt in range(self._settings.current.callback_attempts):
            if attempt:
                await self._pause(min(pause, MAX_PAUSE_S))
                pause *= 2
            result, is_final = await self._attempt(url, body)
            if is_final:
                break
        if result != "delivered":
            logger.warning("the callback of task %s was not delivered: %s", outcome.task_id, result)
        return result

    async def _attempt(self, url: str, body: bytes) -> tuple[str, bool]:
        """Make one attempt to deliver an outcome.

        Returns:
            The result, in the form that `deliver` returns, and whether it is final: after a final
            result there is no further attempt.
        """
        headers = {"content-type": "application/json"}
        if secret := self._settings.current.callback_secret:
            headers[SIGNATURE] = signature_of(body, secret, self._clock.now().timestamp())
        try:
            async with checked_client(self._rules(), ATTEMPT_S) as client:
                answer = await client.post(url, content=body, headers=headers)
        except ToolAgentError as refused:
            return refused.message, True
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as failed:
            return f"{type(failed).__name__}: {failed}"[:300], False
        if answer.is_success:
            return "delivered", True
        is_final = answer.status_code < 500 and answer.status_code not in _TRY_AGAIN
        return f"the receiver answered {answer.status_code}", is_final

    def _rules(self) -> AddressRules:
        return AddressRules(self._settings.current.api_private_hosts)


def signature_of(body: bytes, secret: str, at: float) -> str:
    """Return the value of `SIGNATURE` for a body sent at `at`, in seconds since the epoch."""
    seconds = int(at)
    signature = Signer(secret.encode()).signature(_signed_bytes(body, seconds))
    return f"t={seconds},v1={signature}"


def verify_callback(body: bytes, signature: str, secret: str, now: float) -> bool:
    """Return whether a callback has a valid signature that is not older than `MAX_AGE_S`.

    Args:
        body: Received bytes, without decoding and encoding again.
        signature: Value of the header `SIGNATURE`.
        secret: Value of `TOOL_AGENT_CALLBACK_SECRET`.
        now: Time in seconds since the epoch.
    """
    head, _, mac = signature.partition(",v1=")
    seconds = head.removeprefix("t=")
    if not (seconds.isascii() and seconds.isdigit() and len(seconds) < 16):
        return False
    at = int(seconds)
    fits = head == f"t={at}" and Signer(secret.encode()).is_valid(_signed_bytes(body, at), mac)
    return fits and abs(now - at) <= MAX_AGE_S


def _signed_bytes(body: bytes, seconds: int) -> bytes:
    return b"%d." % seconds + body
