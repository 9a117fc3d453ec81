"""`TaskMoney`: what one task of the coding agent may cost, and what it has cost.

Theory of operation. Before a coder begins, the most that it may cost is reserved (the setting
`coding_task_usd`), under the three limits: it is refused, or a person is asked, before anything is
spent. While the coder works it reports what it has cost so far; that is noted in the reservation,
so that a crash loses none of it. The coder is stopped when its next step may not fit any more: no
step is expected to cost more than the largest one before. When the task is over, what was really
spent goes to the log. That may be more than was reserved, because some coders say only at their end
what they have cost.
"""

from __future__ import annotations

import asyncio
import logging
from decimal import Decimal

from arp.tools.budget import Approve, Budget, Purchase, Reservation, amount_of
from arp.tools.errors import DataFileDamaged, ToolAgentError, UnknownTool

logger = logging.getLogger(__name__)


class TaskMoney:
    """The money of one attempt of a task.

    Args:
        budget: From which it comes.
        description: Of the task, for the billing log.
    """

    def __init__(self, budget: Budget, description: str) -> None:
        self._budget = budget
        self.description = description
        self._provider = "coding agent"
        self._reservation: Reservation | None = None
        self._largest_step = Decimal(0)
        self.used_usd = Decimal(0)
        """What was reported."""
        self.model = ""
        """Who was paid for last, if that is known."""
        self.exhausted = asyncio.Event()
        """Set when the coder has to stop."""

    @property
    def reserved_usd(self) -> Decimal:
        """The most that may be spent."""
        return Decimal(0) if self._reservation is None else self._reservation.amount_usd

    async def reserve(self, provider: str, most_usd: float, approve: Approve | None) -> None:
        """Reserve the most that a coder may cost; nothing if that is 0.

        Args:
            provider: Who is paid.
            most_usd: The most that may be spent, in US dollars.
            approve: Asks a person; `None`: nobody can be asked.

        Raises:
            BudgetRefused, ApprovalNeeded: As `Budget.spend`; nothing is reserved.
        """
        self._provider = provider
        if most_usd > 0:
            purchase = Purchase(provider, most_usd, self.description, is_estimate=True)
            self._reservation = await self._budget.reserved(purchase, approve)

    async def report(self, total_usd: float, model: str = "") -> None:
        """Note what the coder has cost so far, in all. Less than before changes nothing."""
        self.model = model or self.model
        if total_usd == 0:
            return
        try:
            total = amount_of(total_usd)
        except ToolAgentError as wrong:
            logger.warning("%s: %s; the coding agent is stopped", self.description, wrong.message)
            self.exhausted.set()
            return
        if total <= self.used_usd:
            return
        self._largest_step = max(self._largest_step, total - self.used_usd)
        self.used_usd = total
        if total + self._largest_step > self.reserved_usd:
            self.exhausted.set()
        if self._reservation is not None:
            noting = asyncio.to_thread(self._budget.note_used, self._reservation.id, total)
            await asyncio.shield(noting)

    async def close(self) -> Decimal:
        """Write to the log what was spent, give back the rest; return what was spent.

        Cancel: Safe; it is written.
        """
        await asyncio.shield(asyncio.to_thread(self._close))
        return self.used_usd

    def _close(self) -> None:
        used, reservation, self._reservation = self.used_usd, self._reservation, None
        if reservation is not None and not used:
            self._budget.cancel(reservation.id)
            return
        if used > (reservation.amount_usd if reservation is not None else 0):
            limit = reservation.amount_usd if reservation is not None else 0
            logger.warning("%s has cost $%s, more than $%s", self.description, used, limit)
        try:
            if reservation is not None:
                self._budget.settle(reservation.id, used)
                return
        except (DataFileDamaged, UnknownTool):  # or a person has settled or cancelled it meanwhile
            logger.warning("the reservation of %s is gone", self.description)
        if used:
            self._budget.log_paid(Purchase(self._provider, used, self.description))
