"""`TaskMoney`: the cost limit and the costs of one task of the coding agent.

Theory of operation. Before a coder begins, its cost limit (the setting `coding_task_usd`) is
reserved under the three limits of the budget. A refusal or a question to a person therefore comes
before anything is spent. While the coder works it reports its costs so far. They are recorded in
the reservation, so that a crash loses none of them. The coder is stopped when its next step may
exceed the reservation. The estimate for the next step is the cost of the most expensive step so
far.
When the task is over, the actual cost is written to the log. It may exceed the reservation, because
some coders report their costs only at their end.
"""

from __future__ import annotations

import asyncio
import logging
from decimal import Decimal

from arp.tools.budget import Approve, Budget, Purchase, Reservation, amount_of
from arp.tools.errors import DataFileDamaged, ToolAgentError, UnknownTool

logger = logging.getLogger(__name__)


class TaskMoney:
    """Costs of one attempt of a task.

    Args:
        budget: Budget that pays.
        description: Description of the task for the billing log.
    """

    def __init__(self, budget: Budget, description: str) -> None:
        self._budget = budget
        self.description = description
        self._provider = "coding agent"
        self._reservation: Reservation | None = None
        self._largest_step = Decimal(0)
        self.used_usd = Decimal(0)
        """Costs reported so far."""
        self.model = ""
        """Last model that was paid for, if known."""
        self.exhausted = asyncio.Event()
        """Event that is set when the coder has to stop."""

    @property
    def reserved_usd(self) -> Decimal:
        """Amount that is reserved."""
        return Decimal(0) if self._reservation is None else self._reservation.amount_usd

    async def reserve(self, provider: str, most_usd: float, approve: Approve | None) -> None:
        """Reserve the cost limit of a coding agent; a limit of 0 reserves nothing.

        Args:
            provider: Receiver of the payment.
            most_usd: Cost limit in US dollars.
            approve: Asks a person; `None` means that no person can be asked.

        Raises:
            BudgetRefused, ApprovalNeeded: See `Budget.spend`. Nothing is reserved.
        """
        self._provider = provider
        if most_usd > 0:
            purchase = Purchase(provider, most_usd, self.description, is_estimate=True)
            self._reservation = await self._budget.reserved(purchase, approve)

    async def report(self, total_usd: float, model: str = "") -> None:
        """Record the total cost of the coder so far. A lower total than before is ignored."""
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
        """Write the spending to the log and release the rest; return the spending.

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
        except (DataFileDamaged, UnknownTool):  # a person may have settled or cancelled it
            logger.warning("the reservation of %s is gone", self.description)
        if used:
            self._budget.log_paid(Purchase(self._provider, used, self.description))
