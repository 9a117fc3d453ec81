"""Keep connections and requests open only while the credential that admitted them is valid.

Theory of operation. Access is checked when a request begins. Each request or connection holds a
`Lease`. While there are leases that can end, a timer checks them every `CHECK_S`, once for each
credential, and ends those with an invalid token, login or user. If no lease can end, there is no
timer.

If the author's hook admitted the user, only the hook knows when a session of another application
has ended. Each lease calls the hook again with its own request, every `recheck_s`. The delay is
random within `SPREAD`, so that leases that began together do not all call the hook at once. A hook
that fails, for example while its database restarts, has not refused access: the lease stays valid
for `GRACE_S`.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from arp.access.principal import Principal

CHECK_S: Final = 0.5
"""Interval of the checks in seconds. A connection must close within a second after its token was
revoked; the other half second is reserve for a busy server."""

ENDED: Final = "the token or the login has ended"
"""Reason with which a connection is closed (1008)."""

GRACE_S: Final = 300.0
"""Time in seconds that a connection stays open while its hook fails; logins have the same limit."""

ANSWER_S: Final = 30.0
"""Time limit of a hook in seconds; a slower hook counts as failed."""

SPREAD: Final = 0.2
"""Maximum random reduction of `recheck_s`, as a fraction. After a restart, all clients connect
within a second, and their leases would otherwise call the hook together."""

Ask: TypeAlias = Callable[[], Awaitable[Principal | None]]
"""Calls the hook again for an admitted user; raises `HookFailed`."""


class HookFailed(Exception):
    """The hook raised an exception, so there is no decision."""


Grounds: TypeAlias = tuple[str, float | None]
"""Credential that admitted a user, and its expiry in seconds since the epoch."""


class Leases:
    """All leases of a server.

    Args:
        is_valid: Returns whether an admitted principal still has access.
        recheck_s: Interval in seconds at which a hook is called again; `None` means never.
    """

    def __init__(
        self, is_valid: Callable[[Principal], bool], recheck_s: float | None = None
    ) -> None:
        self.recheck_s = recheck_s
        self._is_valid = is_valid
        self._held: dict[Grounds, dict[Lease, Principal]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def hold(self, lease: Lease, principal: Principal) -> None:
        """Start checking a lease."""
        self._held.setdefault(grounds_of(principal), {})[lease] = principal
        self._wait()

    def drop(self, lease: Lease, principal: Principal) -> None:
        """Stop checking a lease."""
        grounds = grounds_of(principal)
        leases = self._held.get(grounds, {})
        leases.pop(lease, None)
        if not leases:
            self._held.pop(grounds, None)

    def check(self) -> None:
        """End the leases that are not valid any more."""
        for leases in list(self._held.values()):
            if not self._is_valid(next(iter(leases.values()))):
                for lease in list(leases):
                    lease.end()

    def close(self) -> None:
        """Stop the timer, because it belongs to an event loop. The next lease starts a new one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._pause_s(), self._run_check)

    def _pause_s(self) -> float:
        """Return the seconds until the next check: `CHECK_S`, or less if an access ends earlier."""
        now = time.time()
        ends = (until - now for _, until in self._held if until is not None)
        return max(0.0, min((CHECK_S, *ends)))

    def _run_check(self) -> None:
        self._timer = None
        self.check()
        if self._held:
            self._wait()


class Lease:
    """Right of one request or connection to stay open.

    It ends once; then `end` calls the function passed to `when_ended`.
    """

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
        """Loop time of the first failure since the hook last succeeded."""

    def begin(self, principal: Principal | None, ask: Ask | None = None) -> None:
        """Start the lease of a principal. If nothing limits the access, no check ends the lease.

        Args:
            principal: Admitted principal; `None` if there is none yet.
            ask: Calls the hook again; `None` if no hook admitted the principal.
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
        """Whether anything limits the lease."""
        return self._principal is not None or self._timer is not None

    def _ask(self, principal: Principal, ask: Ask) -> None:
        task = asyncio.get_running_loop().create_task(self._recheck(principal, ask))
        self._asking = task

    async def _recheck(self, principal: Principal, ask: Ask) -> None:
        try:
            async with asyncio.timeout(ANSWER_S):
                found = await ask()
        except (HookFailed, TimeoutError):
            found = principal if self._is_within_grace() else None
        else:
            self._failing_since = None
        # `begin` and `end` call `release`, which would otherwise cancel this task.
        self._asking = None
        # A connection keeps its user and rights to its end, so it must end if either has changed.
        if found is None or (found.name, found.is_admin) != (principal.name, principal.is_admin):
            self.end()
        else:
            self.begin(found, ask)

    def _is_within_grace(self) -> bool:
        """Return whether the hook has failed for less than `GRACE_S`."""
        now = asyncio.get_running_loop().time()
        if self._failing_since is None:
            self._failing_since = now
        return now < self._failing_since + GRACE_S

    def when_ended(self, call: Callable[[], object]) -> None:
        """Set the function to call when the lease ends. If it has ended, call the function now."""
        self._when_ended = call
        if self.is_over:
            self.end()

    def end(self) -> None:
        """End the lease, because its holder has lost access."""
        self.release()
        self.is_over = True
        call, self._when_ended = self._when_ended, None
        if call is not None:
            call()

    def release(self) -> None:
        """Stop checking the lease, because its request or connection is over."""
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
    """Return whether the access of a principal can end."""
    return bool(principal.credential) or principal.expires_at is not None


def grounds_of(principal: Principal) -> Grounds:
    """Return the credential of a principal and its expiry."""
    return principal.credential, principal.expires_at
