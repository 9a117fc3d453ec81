"""Open connections and requests, each as long as what let it in is valid.

Theory of operation. A request is checked when it begins. What stays open longer holds a `Lease`.
While there are leases that can end, a timer checks them every `CHECK_S`, each user once, and ends
those whose token, login or user is not valid any more. Where nothing can end, there is no timer.

A hook of the author knows when a session of another application has ended. Each lease asks it again
with its own request, every `recheck_s`; leases that began together do not ask together. A hook that
fails, such as while its database restarts, has not said no: the lease goes on for `GRACE_S`.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from arp.access.principal import Principal

CHECK_S: Final = 0.5
"""A connection is closed within a second after its token was revoked; half of that is for load."""

ENDED: Final = "the token or the login has ended"
"""Why a connection is closed (1008)."""

GRACE_S: Final = 300.0
"""How long a connection goes on while the hook that let it in only fails, as for a login."""

ANSWER_S: Final = 30.0
"""A hook that takes longer has failed."""

SPREAD: Final = 0.2
"""By so much of the time a lease may ask earlier: after a restart, all connect within a second."""

Ask: TypeAlias = Callable[[], Awaitable[Principal | None]]
"""Asks who somebody is who was let in before; raises `HookFailed`."""


class HookFailed(Exception):
    """The hook raised, instead of saying who somebody is."""


Grounds: TypeAlias = tuple[str, float | None]
"""By what somebody was let in, and until when."""


class Leases:
    """All leases of a server.

    Args:
        is_valid: Whether somebody who was let in still would be.
        recheck_s: How often a hook is asked again; `None`: never.
    """

    def __init__(
        self, is_valid: Callable[[Principal], bool], recheck_s: float | None = None
    ) -> None:
        self.recheck_s = recheck_s
        self._is_valid = is_valid
        self._held: dict[Grounds, dict[Lease, Principal]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def hold(self, lease: Lease, principal: Principal) -> None:
        """Watch a lease from now on."""
        self._held.setdefault(grounds_of(principal), {})[lease] = principal
        self._wait()

    def drop(self, lease: Lease, principal: Principal) -> None:
        """Watch it no longer."""
        grounds = grounds_of(principal)
        some = self._held.get(grounds, {})
        some.pop(lease, None)
        if not some:
            self._held.pop(grounds, None)

    def check(self) -> None:
        """End what is not valid any more."""
        for some in list(self._held.values()):
            if not self._is_valid(next(iter(some.values()))):
                for lease in list(some):
                    lease.end()

    def close(self) -> None:
        """Stop the timer, which belongs to an event loop; the next lease starts one again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._pause_s(), self._look)

    def _pause_s(self) -> float:
        """Return when to look next: a moment that is known beforehand is met exactly."""
        now = time.time()
        ends = (until - now for _, until in self._held if until is not None)
        return max(0.0, min((CHECK_S, *ends)))

    def _look(self) -> None:
        self._timer = None
        self.check()
        if self._held:
            self._wait()


class Lease:
    """One request or connection. It ends once; then `end` calls what was given to `when_ended`."""

    __slots__ = (
        "_asking",
        "_failing_since",
        "_leases",
        "_principal",
        "_timer",
        "_when_ended",
        "is_over",
    )

    def __init__(self, leases: Leases) -> None:
        self.is_over = False
        self._leases = leases
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[None] | None = None
        self._principal: Principal | None = None
        self._when_ended: Callable[[], object] | None = None
        self._failing_since: float | None = None
        """Since when the hook has only failed, by the clock of the loop."""

    def begin(self, principal: Principal | None, ask: Ask | None = None) -> None:
        """Last as long as a principal may come in; for ever, if nothing limits that.

        Args:
            principal: Who was let in; `None`: nobody yet.
            ask: Asks the hook that let them in again, if one did.
        """
        self.release()
        if principal is not None and can_end(principal):
            self._principal = principal
            self._leases.hold(self, principal)
        pause_s = self._leases.recheck_s
        if principal is not None and ask is not None and pause_s is not None:
            loop = asyncio.get_running_loop()
            pause_s *= 1 - SPREAD * random.random()
            self._timer = loop.call_later(pause_s, self._ask, principal, ask)

    @property
    def may_end(self) -> bool:
        """Return whether anything limits how long it lasts."""
        return self._principal is not None or self._timer is not None

    def _ask(self, principal: Principal, ask: Ask) -> None:
        task = asyncio.get_running_loop().create_task(self._recheck(principal, ask))
        self._asking = task

    async def _recheck(self, principal: Principal, ask: Ask) -> None:
        try:
            async with asyncio.timeout(ANSWER_S):
                found = await ask()
        except (HookFailed, TimeoutError):
            found = principal if self._may_go_on() else None
        else:
            self._failing_since = None
        self._asking = None
        if found is None or (found.name, found.is_admin) != (principal.name, principal.is_admin):
            self.end()
        else:
            self.begin(found, ask)

    def _may_go_on(self) -> bool:
        """Return whether the hook has not failed for too long."""
        now = asyncio.get_running_loop().time()
        if self._failing_since is None:
            self._failing_since = now
        return now < self._failing_since + GRACE_S

    def when_ended(self, call: Callable[[], object]) -> None:
        """Call a function when it ends, in place of the one that was given before; or at once."""
        self._when_ended = call
        if self.is_over:
            self.end()

    def end(self) -> None:
        """End it: who has it is not let in any more."""
        self.release()
        self.is_over = True
        call, self._when_ended = self._when_ended, None
        if call is not None:
            call()

    def release(self) -> None:
        """Watch it no longer: the request or connection is over."""
        if self._principal is not None:
            self._leases.drop(self, self._principal)
            self._principal = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None


def can_end(principal: Principal) -> bool:
    """Return whether somebody who was let in may lose that."""
    return bool(principal.credential) or principal.expires_at is not None


def grounds_of(principal: Principal) -> Grounds:
    """Return by what somebody was let in, and until when."""
    return principal.credential, principal.expires_at
