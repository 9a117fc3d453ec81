"""`CallbackSender`: sends the outcome of a task to its `callback_url`.

Theory of operation. The address is that of a stranger: it is checked when the task is asked for,
and again at the socket with every attempt (`addresses`), so that no private address, redirect or
rebinding gets through. What is sent is the message of the bus, `tool_ready` or `tool_error`. A
receiver that is gone for a while is tried again; one that refuses is not. With a secret each
request is signed, so that a receiver can tell it from a forged one (`verify_callback`).
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Final

import httpx
import msgspec

from arp.tools.build.bus import Payload, message_with
from arp.tools.clock import SYSTEM_CLOCK, Clock
from arp.tools.errors import ToolAgentError
from arp.tools.run.addresses import AddressRules, check_url, checked_client
from arp.tools.settings import LiveSettings

logger = logging.getLogger(__name__)

SIGNATURE: Final = "x-tool-agent-signature"
"""`t=SECONDS,v1=HEX`: HMAC-SHA-256 of `SECONDS.BODY` with the secret."""
MAX_AGE_S: Final = 300
"""So old a signed callback may be: an older one may have been recorded by somebody else."""
ATTEMPT_S: Final = 10.0
"""So long one attempt may take."""
FIRST_PAUSE_S: Final = 1.0
"""Before the second attempt; it doubles with each further one."""
MAX_PAUSE_S: Final = 60.0
MAX_URL: Final = 2_000
"""Characters of an address."""
_TRY_AGAIN: Final = frozenset({408, 425, 429})
"""Statuses below 500 after which another attempt may go better."""


class CallbackSender:
    """Delivers outcomes.

    Args:
        settings: How often is tried, with which secret, and which private hosts are allowed.
        clock: What time it is.
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
        """Check an address, as far as that is possible without asking the network.

        Raises:
            ToolAgentError: It can never be called.
        """
        if len(url) > MAX_URL:
            raise ToolAgentError(f"callback_url: more than {MAX_URL} characters")
        check_url(url, self._rules())

    async def deliver(self, url: str, payload: Payload) -> str:
        """Send a payload; return `delivered`, or the reason why it was not delivered.

        Cancel: Safe; the receiver may have it.
        """
        body = msgspec.json.encode(message_with(payload))
        pause, result = FIRST_PAUSE_S, "not tried"
        for attempt in range(self._settings.current.callback_attempts):
            if attempt:
                await self._pause(min(pause, MAX_PAUSE_S))
                pause *= 2
            result, is_final = await self._attempt(url, body)
            if is_final:
                break
        if result != "delivered":
            logger.warning(
                "the callback of task %s was not delivered: %s", payload_task(payload), result
            )
        return result

    async def _attempt(self, url: str, body: bytes) -> tuple[str, bool]:
        """Try once; return the result as `deliver` does, and whether it is final."""
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


def payload_task(payload: Payload) -> str:
    """Return the id of the task of a payload; empty if it has none."""
    return str(getattr(payload, "task_id", ""))


def signature_of(body: bytes, secret: str, at: float) -> str:
    """Return what `SIGNATURE` says for a body that is sent at a time, in seconds since 1970."""
    seconds = int(at)
    signed = hmac.new(secret.encode(), b"%d." % seconds + body, sha256).hexdigest()
    return f"t={seconds},v1={signed}"


def verify_callback(body: bytes, signature: str, secret: str, now: float) -> bool:
    """Return whether a callback was signed with the secret, and is not older than `MAX_AGE_S`.

    Args:
        body: As it came, not decoded and encoded again.
        signature: The header `SIGNATURE`.
        secret: `TOOL_AGENT_CALLBACK_SECRET`.
        now: In seconds since 1970.
    """
    parts = dict(part.split("=", 1) for part in signature.split(",") if "=" in part)
    seconds = parts.get("t", "")
    if not (seconds.isascii() and seconds.isdigit() and len(seconds) < 16):
        return False
    expected = signature_of(body, secret, int(seconds))
    fits = hmac.compare_digest(expected.encode(), signature.encode())
    return fits and abs(now - int(seconds)) <= MAX_AGE_S
