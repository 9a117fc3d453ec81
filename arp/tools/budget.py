"""`Budget`: limits, payments and reservations.

Theory of operation. The amount of a payment is reserved before it is paid, and every check counts
the spending of the month plus all reservations. Therefore simultaneous payments cannot exceed a
limit together. A payment that a crash interrupts still counts: its reservation stays until it is
settled or cancelled.

There are two files. `billing_log.json` holds the payments in the format of the interface document.
`billing_state.json` holds the data that this format has no fields for: the month, the spending in
it, and the reservations. All changes are made under the lock of the state file. Settling a
reservation changes both files in three steps: the state records which reservation is being settled
and the length of the log; the transaction is appended to the log; the reservation becomes spending
in the state. If a crash interrupts this, the next change compares the log with the recorded length
and completes the settlement.

A cost that is not known in advance, such as that of a coding agent, is reserved as an estimate.
Usage that is reported in the meantime is recorded in the reservation (`note_used`), and the
reservation is settled with the actual cost, which may be lower or higher. After a crash the
reported usage is written to the log. The rest stays reserved, because it is unknown how much of it
was spent.

The log has no dates, so it does not show the spending of a month. If the state is damaged, or is
missing while the log has payments, nothing is spent until a person calls `rebuild`.

The month is that of the latest time seen: setting the clock back does not reopen a month.

Source: internal_api.md 11.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from datetime import datetime
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, field, structs

from arp.tools.clock import SYSTEM_CLOCK, Clock
from arp.tools.errors import (
    ApprovalNeeded,
    BudgetRefused,
    DataFileDamaged,
    InvalidToolMeta,
    UnknownTool,
)
from arp.tools.registry.json_file import JsonFile
from arp.tools.settings import LiveSettings

BILLING_FILE: Final = "billing_log.json"
STATE_FILE: Final = "billing_state.json"
PLACES: Final = 6
"""Decimal places of an amount, because prices of single tokens need that many."""
MAX_TEXT: Final = 500
"""Maximum length of a provider or a description, in characters."""

REBUILD: Final = (
    "put a good copy in its place, or say what was spent: arp tools budget --rebuild USD "
    "(all: everything in the log)"
)
"""Advice to a person when the state is lost."""

Result = TypeVar("Result")


class Transaction(msgspec.Struct, frozen=True):
    """Payment in the format of `billing_log.json`."""

    provider: str
    amount_usd: Decimal
    description: str = ""


class BillingDocument(msgspec.Struct, frozen=True):
    """Content of `billing_log.json`."""

    transactions: list[Transaction] = field(default_factory=list)


class Reservation(msgspec.Struct, frozen=True):
    """Amount that is reserved for a payment."""

    id: str
    provider: str
    amount_usd: Decimal
    description: str
    at: datetime
    state: Literal["waiting", "reserved", "settling"]
    """`waiting`: needs a person's approval; `reserved`: may be paid; `settling`: being written to
    the log."""
    log_length: int = 0
    """Number of transactions in the log before the settlement; used while `settling`."""
    used_usd: Decimal = Decimal(0)
    """Known spending of an estimate that is not settled yet."""


class BudgetState(msgspec.Struct, frozen=True):
    """Content of `billing_state.json`."""

    month: Annotated[str, Meta(pattern=r"^(\d{4}-\d{2})?$")] = ""
    """Latest month that was seen, such as `2026-03`."""
    spent_usd: Decimal = Decimal(0)
    """Our spending in this month."""
    others_usd: Decimal = Decimal(0)
    """`spent_this_month_usd` of the settings; `others_month` is the month when this value was first
    seen."""
    others_month: str = ""
    reservations: list[Reservation] = field(default_factory=list)

    @property
    def month_usd(self) -> Decimal:
        """Dollars spent in the month, by this program and by others."""
        others = self.others_usd if self.others_month == self.month else Decimal(0)
        return self.spent_usd + others

    @property
    def committed_usd(self) -> Decimal:
        """Dollars spent in the month or reserved."""
        reserved = (max(one.amount_usd, one.used_usd) for one in self.reservations)
        return self.month_usd + sum(reserved, Decimal(0))


class Purchase(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request for a payment."""

    provider: str
    amount: Decimal | float | int | str
    """US dollars; a float is read by its decimal text, so 0.1 means exactly 0.1."""
    description: str = ""
    is_estimate: bool = False
    """Whether `amount` is an upper limit and the actual cost is known later."""


Approve: TypeAlias = Callable[[str, str], Awaitable[bool]]
"""Asks a person for approval. Receives a title with amount and provider, and a text with the
description and what is left of the month."""


class Budget:
    """Budget of one data directory.

    Args:
        settings: Source of the three limits.
        clock: Source of the time.
    """

    def __init__(self, settings: LiveSettings, clock: Clock = SYSTEM_CLOCK) -> None:
        self._settings = settings
        self._clock = clock
        self._log = JsonFile(settings.data_dir / BILLING_FILE, BillingDocument)
        self._state = JsonFile(settings.data_dir / STATE_FILE, BudgetState)

    @property
    def path(self) -> Path:
        """Path of `billing_log.json`."""
        return self._log.path

    def transactions(self) -> list[Transaction]:
        """Return all payments, oldest first."""
        return self._log.read().transactions

    def spent_this_month(self) -> Decimal:
        """Return the dollars spent in this month, by this program and by others."""
        return self._change(lambda state: (state, state)).month_usd

    def left_this_month(self) -> Decimal:
        """Return the dollars that may still be spent in this month; never below 0."""
        state = self._change(lambda state: (state, state))
        return max(self._limit("monthly_limit_usd") - state.committed_usd, Decimal(0))

    def reservations(self) -> list[Reservation]:
        """Return all reservations."""
        return self._change(lambda state: (state, list(state.reservations)))

    async def spend(
        self,
        purchase: Purchase,
        approve: Approve | None = None,
        pay: Callable[[], Awaitable[None]] | None = None,
    ) -> Transaction:
        """Reserve an amount, ask for approval if necessary, pay, and write it to the log.

        Args:
            purchase: Payment to make.
            approve: Asks a person; `None` means that no person can be asked.
            pay: Pays. If it raises, the amount stays reserved, because it may have been paid; a
                person settles or cancels it. `None` means that the payment is made elsewhere,
                before or after.

        Raises:
            InvalidToolMeta: The amount is not a valid amount of money.
            BudgetRefused: The amount is above a limit, or the person declined. Nothing is reserved.
            ApprovalNeeded: A person must approve, but no person can be asked. Nothing is reserved.

        Cancel: Before `pay` is called, nothing stays reserved. During `pay`, the amount stays
            reserved. After that, the payment is still written to the log.
        """
        reservation = await self.reserved(purchase, approve)
        if pay is not None:
            await pay()
        return await asyncio.shield(asyncio.to_thread(self._settle_paid, reservation))

    async def reserved(self, purchase: Purchase, approve: Approve | None = None) -> Reservation:
        """Reserve an amount, ask for approval if necessary, and return the reservation.

        The caller settles or cancels the reservation.

        Raises:
            InvalidToolMeta, BudgetRefused, ApprovalNeeded: As for `spend`. Nothing is reserved.

        Cancel: Nothing is reserved.
        """
        reserving = asyncio.ensure_future(asyncio.to_thread(self.reserve, purchase))
        try:
            reservation = await asyncio.shield(reserving)
        except asyncio.CancelledError:  # the thread continues and may still reserve
            reserving.add_done_callback(self._cancel_late)
            raise
        if reservation.state != "waiting":
            return reservation
        try:
            await self._ask(purchase, reservation, approve)
        except BaseException:
            await asyncio.shield(asyncio.to_thread(self.cancel, reservation.id))
            raise
        return structs.replace(reservation, state="reserved")

    def _cancel_late(self, reserving: asyncio.Future[Reservation]) -> None:
        if not reserving.cancelled() and reserving.exception() is None:
            self.cancel(reserving.result().id)

    def reserve(self, purchase: Purchase) -> Reservation:
        """Reserve an amount; the result's `state` shows whether a person must approve it.

        Raises:
            InvalidToolMeta: The amount is not a valid amount of money.
            BudgetRefused: The amount is above the limit of one payment, or above what is left of
                the month.
        """
        amount = amount_of(purchase.amount)
        single = self._limit("single_tx_limit_usd")
        if amount > single:
            raise BudgetRefused(
                f"{_usd(amount)} to {purchase.provider:.80} is refused: a single payment is at "
                f"most {_usd(single)} (single_tx_limit_usd)"
            )
        needs_person = amount > self._limit("require_approval_above_usd")
        reservation = self._new(purchase, amount, "waiting" if needs_person else "reserved")

        def change(state: BudgetState) -> tuple[BudgetState, Reservation]:
            monthly = self._limit("monthly_limit_usd")
            if state.committed_usd + amount > monthly:
                left = max(monthly - state.committed_usd, Decimal(0))
                raise BudgetRefused(
                    f"{_usd(amount)} to {purchase.provider:.80} is refused: {_usd(left)} of "
                    f"{_usd(monthly)} are left of this month (monthly_limit_usd)"
                )
            return structs.replace(
                state, reservations=[*state.reservations, reservation]
            ), reservation

        return self._change(change)

    def _new(
        self, purchase: Purchase, amount: Decimal, state: Literal["waiting", "reserved"]
    ) -> Reservation:
        provider, description = purchase.provider[:MAX_TEXT], purchase.description[:MAX_TEXT]
        now = self._clock.now()
        return Reservation(secrets.token_hex(8), provider, amount, description, now, state)

    def approve(self, reservation_id: str) -> Reservation:
        """Record that a person has approved a reservation.

        Raises:
            UnknownTool: No reservation has this id.
        """

        def change(state: BudgetState) -> tuple[BudgetState, Reservation]:
            found = structs.replace(_find_reservation(state, reservation_id), state="reserved")
            return _replace_reservation(state, found), found

        return self._change(change)

    def cancel(self, reservation_id: str) -> None:
        """Release a reservation that was not paid. May be repeated."""

        def change(state: BudgetState) -> tuple[BudgetState, None]:
            rest = [one for one in state.reservations if one.id != reservation_id]
            return structs.replace(state, reservations=rest), None

        self._change(change)

    def note_used(self, reservation_id: str, used: Decimal | float) -> None:
        """Record how much of an estimate is spent so far; a lower value than before is ignored.

        Raises:
            InvalidToolMeta, BudgetRefused: The value is not a valid amount of money.
            UnknownTool: No reservation has this id.
        """
        amount = amount_of(used)

        def change(state: BudgetState) -> tuple[BudgetState, None]:
            found = _find_reservation(state, reservation_id)
            noted = structs.replace(found, used_usd=max(found.used_usd, amount))
            return _replace_reservation(state, noted), None

        self._change(change)

    def settle(
        self, reservation_id: str, amount: Decimal | float | int | str | None = None
    ) -> Transaction:
        """Write the payment of a reserved amount to the log.

        Args:
            reservation_id: Id of the reservation.
            amount: Amount that was paid; `None` means the reserved amount. A higher amount is
                written too, because it was spent.

        Raises:
            UnknownTool: No reservation has this id.
            ApprovalNeeded: The reservation is not approved yet.
            InvalidToolMeta, BudgetRefused: `amount` is not a valid amount of money.
        """
        paid = None if amount is None else amount_of(amount)

        def begin(state: BudgetState) -> tuple[BudgetState, Transaction]:
            found = _find_reservation(state, reservation_id)
            if found.state == "waiting":
                raise ApprovalNeeded(f"{_usd(found.amount_usd)} waits for a person's approval")
            begun = self._begin_settling(found, paid or found.amount_usd)
            return _replace_reservation(state, begun), _transaction(begun)

        transaction = self._change(begin)
        self._change(lambda state: (state, None))  # any change completes the begun settlement
        return transaction

    def _settle_paid(self, reservation: Reservation) -> Transaction:
        try:
            return self.settle(reservation.id)
        except DataFileDamaged:
            # The money is spent. Without this entry no record of the payment would remain.
            self._append_payment(_transaction(reservation))
            raise

    def _append_payment(self, paid: Transaction) -> None:
        """Write a payment to the log while the state cannot be read; `rebuild` will count it."""
        self._log.change(
            lambda log: (structs.replace(log, transactions=[*log.transactions, paid]), None)
        )

    def log_paid(self, purchase: Purchase) -> Transaction:
        """Write a payment without a reservation to the log; past spending has no limit.

        Raises:
            InvalidToolMeta, BudgetRefused: The amount is not a valid amount of money.
        """
        reservation = self._new(purchase, amount_of(purchase.amount), "reserved")

        def change(state: BudgetState) -> tuple[BudgetState, Transaction]:
            begun = self._begin_settling(reservation, reservation.amount_usd)
            reservations = [*state.reservations, begun]
            return structs.replace(state, reservations=reservations), _transaction(begun)

        try:
            transaction = self._change(change)
        except DataFileDamaged:
            self._append_payment(_transaction(reservation))
            raise
        self._change(lambda state: (state, None))  # any change completes the begun settlement
        return transaction

    def recover(self) -> list[Reservation]:
        """Cancel reservations that waited for approval, and return the remaining ones.

        Called at the start by the only service of the data directory. It is unknown whether a
        remaining reservation was paid, so it counts until a person settles or cancels it.
        """

        def change(state: BudgetState) -> tuple[BudgetState, list[Reservation]]:
            rest = [one for one in state.reservations if one.state != "waiting"]
            return structs.replace(state, reservations=rest), rest

        for one in self._change(change):
            if one.used_usd:
                self._settle_used(one.id)
        return self.reservations()

    def _settle_used(self, reservation_id: str) -> None:
        """Write the used part of an estimate to the log; the rest stays reserved."""

        def split(state: BudgetState) -> tuple[BudgetState, None]:
            found = _find_reservation(state, reservation_id)
            used = self._begin_settling(found, found.used_usd)
            left = found.amount_usd - found.used_usd
            rest = structs.replace(
                found, id=secrets.token_hex(8), amount_usd=left, used_usd=Decimal(0)
            )
            after = _replace_reservation(state, used)
            kept = [*after.reservations, *([rest] if left > 0 else [])]
            return structs.replace(after, reservations=kept), None

        self._change(split)
        self._change(lambda state: (state, None))  # any change completes the begun settlement

    def _begin_settling(self, reservation: Reservation, amount: Decimal) -> Reservation:
        """Return a reservation in the state `settling`; the caller holds the lock."""
        length = len(self._log.read().transactions)
        return structs.replace(
            reservation,
            state="settling",
            log_length=length,
            amount_usd=amount,
            used_usd=Decimal(0),
        )

    async def _ask(
        self, purchase: Purchase, reservation: Reservation, approve: Approve | None
    ) -> None:
        amount = _usd(reservation.amount_usd)
        if approve is None:
            limit = _usd(self._limit("require_approval_above_usd"))
            raise ApprovalNeeded(
                f"{amount} to {reservation.provider:.80} needs a person's approval: it is above "
                f"{limit} (require_approval_above_usd), and no person can be asked here"
            )
        left = self._limit("monthly_limit_usd") - self.spent_this_month()
        text = (
            f"{reservation.description or 'No description.'}\n"
            f"{_usd(max(left, Decimal(0)))} are left of this month before it."
        )
        most = "up to " if purchase.is_estimate else ""
        if not await approve(f"Pay {most}{amount} to {reservation.provider}?", text):
            raise BudgetRefused(f"{amount} to {reservation.provider:.80} was not approved")
        await asyncio.to_thread(self.approve, reservation.id)

    def rebuild(self, spent: Decimal | float | str | None = None) -> Decimal:
        """Replace a damaged or missing state; return the spending of the month.

        Reservations are lost: payments that were in progress must be part of `spent`.

        Args:
            spent: Spending in this month, in US dollars; `None` means the sum of the whole log.

        Raises:
            InvalidToolMeta, BudgetRefused: `spent` is not a valid amount of money.
            DataFileDamaged: The log cannot be read.
        """
        paid = sum((one.amount_usd for one in self._log.read().transactions), Decimal(0))
        is_nothing = str(spent).strip() in ("0", "0.0", "0.00")
        amount = paid if spent is None else Decimal(0) if is_nothing else amount_of(spent)
        month = self._clock.now().strftime("%Y-%m")
        self._state.replace_damaged(BudgetState(month, amount))
        return amount

    def _change(self, make: Callable[[BudgetState], tuple[BudgetState, Result]]) -> Result:
        """Complete an interrupted settlement, begin a new month if it is due, and apply `make`.

        Raises:
            DataFileDamaged: The spending of this month is unknown; nothing has changed.
        """

        def change(state: BudgetState) -> tuple[BudgetState, Result]:
            if not state.month and self._log.read().transactions:
                raise DataFileDamaged(
                    f"{self._state.path} is missing, and {self._log.path} has payments without "
                    f"dates, so the spending of this month is unknown; {REBUILD}"
                )
            now = self._with_month(self._finish_settlement(state))
            after, result = make(now)
            return (state if after == state else after), result

        try:
            return self._state.change(change)
        except DataFileDamaged as damaged:
            if REBUILD in damaged.message or str(self._state.path) not in damaged.message:
                raise
            raise DataFileDamaged(
                f"{self._state.path} cannot be read, so the spending of this month is unknown; "
                f"{REBUILD}"
            ) from damaged

    def _finish_settlement(self, state: BudgetState) -> BudgetState:
        """Complete a settlement that a crash interrupted, and return the state after it."""
        for one in state.reservations:
            if one.state != "settling":
                continue
            transaction = _transaction(one)

            def append(
                log: BillingDocument, length: int = one.log_length, new: Transaction = transaction
            ) -> tuple[BillingDocument, None]:
                if len(log.transactions) > length and log.transactions[length] == new:
                    return log, None
                return structs.replace(log, transactions=[*log.transactions, new]), None

            self._log.change(append)
            rest = [other for other in state.reservations if other.id != one.id]
            # The transaction is logged now, so it counts in the current month.
            moved = self._with_month(structs.replace(state, reservations=rest))
            return structs.replace(moved, spent_usd=moved.spent_usd + one.amount_usd)
        return state

    def _with_month(self, state: BudgetState) -> BudgetState:
        """Return the state for the current month, or for the latest month seen if that is later."""
        month = self._clock.now().strftime("%Y-%m")
        if month > state.month:
            state = structs.replace(state, month=month, spent_usd=Decimal(0))
        others = self._limit("spent_this_month_usd")
        if others != state.others_usd:
            state = structs.replace(state, others_usd=others, others_month=state.month)
        return state

    def _limit(self, name: str) -> Decimal:
        return Decimal(str(getattr(self._settings.current, name)))


def amount_of(value: Decimal | float | int | str) -> Decimal:
    """Return an amount of money, rounded up to `PLACES` decimal places.

    Raises:
        InvalidToolMeta: The value is not a number, or not above zero.
        BudgetRefused: The value is above every possible limit.
    """
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        raise InvalidToolMeta(f"amount_usd {value!r:.40} is not a number") from None
    if isinstance(value, bool) or not amount.is_finite() or amount <= 0:
        raise InvalidToolMeta(f"amount_usd is {value!r:.40}; it has to be above 0")
    if amount.adjusted() > 12 or len(str(value)) > 40:
        raise BudgetRefused(f"amount_usd {value!r:.40} is above every limit")
    plain = amount.quantize(Decimal(1).scaleb(-PLACES), ROUND_CEILING).normalize()
    # The document writes whole amounts as 5.0, not as 5 or 5E+1.
    return plain.quantize(Decimal("0.1")) if plain == plain.to_integral() else plain


def _find_reservation(state: BudgetState, reservation_id: str) -> Reservation:
    for one in state.reservations:
        if one.id == reservation_id:
            return one
    raise UnknownTool(f"there is no reservation {reservation_id!r:.40}")


def _replace_reservation(state: BudgetState, changed: Reservation) -> BudgetState:
    reservations = [changed if one.id == changed.id else one for one in state.reservations]
    return structs.replace(state, reservations=reservations)


def _transaction(reservation: Reservation) -> Transaction:
    return Transaction(reservation.provider, reservation.amount_usd, reservation.description)


def _usd(amount: Decimal) -> str:
    return f"${amount:,.2f}" if amount == round(amount, 2) else f"${amount:f}"
