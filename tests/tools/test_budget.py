"""Money: three limits, reservations that survive a restart, and never more than the limit."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import threading
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from arp.tools.budget import Budget, Purchase, Reservation, amount_of
from arp.tools.clock import Clock
from arp.tools.errors import (
    ApprovalNeeded,
    BudgetRefused,
    DataFileDamaged,
    InvalidToolMeta,
    UnknownTool,
)
from arp.tools.settings import LiveSettings, ToolSettings


class Calendar:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.at = datetime(2026, 3, 20, 10, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at


def budget(folder: Path, calendar: Calendar | None = None, **limits: float) -> Budget:
    settings = ToolSettings(data_dir=folder, **limits)  # type: ignore[arg-type] # limits are numbers
    return Budget(LiveSettings(settings), Clock(now=(calendar or Calendar()).now))


async def yes(title: str, text: str) -> bool:
    return True


async def no(title: str, text: str) -> bool:
    return False


def read(folder: Path, name: str) -> object:
    return json.loads((folder / name).read_text())


async def test_the_log_has_the_format_of_the_document(tmp_path: Path) -> None:
    """Section 11."""
    made = await budget(tmp_path).spend(Purchase("openai", 5.0, "API Key 充值"))
    assert made.amount_usd == Decimal(5)
    assert read(tmp_path, "billing_log.json") == {
        "transactions": [{"provider": "openai", "amount_usd": 5.0, "description": "API Key 充值"}]
    }
    assert '"amount_usd": 5.0' in (tmp_path / "billing_log.json").read_text()


async def test_up_to_the_threshold_nobody_is_asked(tmp_path: Path) -> None:
    await budget(tmp_path).spend(Purchase("a", 10))
    assert budget(tmp_path).spent_this_month() == 10


async def test_above_the_threshold_a_person_is_asked(tmp_path: Path) -> None:
    asked = []

    async def answer(title: str, text: str) -> bool:
        asked.append((title, text))
        return True

    mine = budget(tmp_path)
    await mine.spend(Purchase("openai", "10.01", "tokens"), answer)
    assert asked == [("Pay $10.01 to openai?", "tokens\n$100.00 are left of this month before it.")]
    assert mine.left_this_month() == Decimal("89.99")


@pytest.mark.parametrize(("approve", "error"), [(no, BudgetRefused), (None, ApprovalNeeded)])
async def test_what_is_not_approved_is_not_spent(
    tmp_path: Path, approve: object, error: type[Exception]
) -> None:
    mine = budget(tmp_path)
    with pytest.raises(error, match=r"\$15\.00 to x"):
        await mine.spend(Purchase("x", 15), approve)  # type: ignore[arg-type] # of the parameters
    assert mine.left_this_month() == 100
    assert mine.reservations() == []
    assert mine.transactions() == []


async def test_above_the_single_limit_it_is_refused_without_asking(tmp_path: Path) -> None:
    with pytest.raises(BudgetRefused, match=r"at most \$20\.00 \(single_tx_limit_usd\)"):
        await budget(tmp_path).spend(Purchase("x", "20.000001"), yes)
    await budget(tmp_path).spend(Purchase("x", 20), yes)


async def test_above_the_rest_of_the_month_it_is_refused(tmp_path: Path) -> None:
    mine = budget(tmp_path, monthly_limit_usd=25.0)
    await mine.spend(Purchase("x", 20), yes)
    with pytest.raises(BudgetRefused, match=r"\$5\.00 of \$25\.00 are left of this month"):
        await mine.spend(Purchase("x", "5.01"), yes)
    await mine.spend(Purchase("x", 5), yes)
    assert mine.left_this_month() == 0


async def test_a_hundred_spends_at_once_stay_within_the_limit(tmp_path: Path) -> None:
    mine = budget(tmp_path, monthly_limit_usd=10.0)
    outcomes = await asyncio.gather(
        *(mine.spend(Purchase(f"p{number}", 1)) for number in range(100)), return_exceptions=True
    )
    assert sum(isinstance(one, BudgetRefused) for one in outcomes) == 90
    assert len(mine.transactions()) == 10
    assert mine.spent_this_month() == 10


def spend_in_a_process(folder: str, number: int) -> int:
    """Spend a dollar again and again until it is refused; return how often it was not."""
    mine = budget(Path(folder), monthly_limit_usd=10.0)
    for done in range(20):
        try:
            mine.settle(mine.reserve(Purchase(f"process {number}", 1)).id)
        except BudgetRefused:
            return done
    return 20


def test_processes_share_the_limit(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        spent = pool.starmap(spend_in_a_process, [(str(tmp_path), number) for number in range(3)])
    assert sum(spent) == 10
    assert len(budget(tmp_path).transactions()) == 10


async def test_a_question_that_waits_reserves_its_amount(tmp_path: Path) -> None:
    mine = budget(tmp_path, monthly_limit_usd=30.0)
    answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    asked = asyncio.Event()

    async def waits(title: str, text: str) -> bool:
        asked.set()
        return await answer

    waiting = asyncio.create_task(mine.spend(Purchase("x", 20), waits))
    await asked.wait()
    with pytest.raises(BudgetRefused):
        await mine.spend(Purchase("y", "10.5"), yes)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert mine.left_this_month() == 30


async def test_a_crash_between_reserve_and_settle_keeps_the_amount(tmp_path: Path) -> None:
    """It may have been paid: nobody knows."""

    async def dies() -> None:
        raise ConnectionError("the line was cut while it was paid")

    mine = budget(tmp_path, monthly_limit_usd=10.0)
    with pytest.raises(ConnectionError):
        await mine.spend(Purchase("x", 6), pay=dies)
    again = budget(tmp_path, monthly_limit_usd=10.0)
    (left,) = again.recover()
    assert left.amount_usd == 6
    assert left.state == "reserved"
    with pytest.raises(BudgetRefused):
        again.reserve(Purchase("y", 5))
    again.cancel(left.id)
    assert again.left_this_month() == 10


async def test_a_question_that_a_crash_left_is_given_back(tmp_path: Path) -> None:
    mine = budget(tmp_path)
    mine.reserve(Purchase("x", 15))
    assert mine.left_this_month() == 85
    assert budget(tmp_path).recover() == []
    assert mine.left_this_month() == 100


@pytest.mark.parametrize("after", ["before the log", "before the state"])
def test_a_crash_while_settling_writes_one_transaction(
    tmp_path: Path, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = budget(tmp_path)
    mine.settle(mine.reserve(Purchase("first", 1)).id)
    second = mine.reserve(Purchase("second", 2))
    original = Budget._finish_settlement

    def dies(self: Budget, state: object) -> object:
        if any(one.state == "settling" for one in state.reservations):  # type: ignore[attr-defined] # a BudgetState
            if after == "before the state":
                original(self, state)  # type: ignore[arg-type] # a BudgetState
            raise OSError("killed")
        return state

    monkeypatch.setattr(Budget, "_finish_settlement", dies)
    with pytest.raises(OSError, match="killed"):
        mine.settle(second.id)
    monkeypatch.undo()
    again = budget(tmp_path)
    assert again.recover() == []
    assert [(one.provider, one.amount_usd) for one in again.transactions()] == [
        ("first", Decimal(1)),
        ("second", Decimal(2)),
    ]
    assert again.spent_this_month() == 3


async def test_a_new_month_begins_at_zero_and_keeps_what_is_reserved(tmp_path: Path) -> None:
    calendar = Calendar()
    mine = budget(tmp_path, calendar)
    await mine.spend(Purchase("x", 10))
    mine.reserve(Purchase("y", 7))
    calendar.at = datetime(2026, 4, 1, tzinfo=UTC)
    assert mine.spent_this_month() == 0
    assert mine.left_this_month() == 93


async def test_a_clock_that_is_set_back_opens_no_month_again(tmp_path: Path) -> None:
    calendar = Calendar()
    mine = budget(tmp_path, calendar, monthly_limit_usd=10.0)
    await mine.spend(Purchase("x", 10))
    for month in (2, 1):
        calendar.at = datetime(2026, month, 1, tzinfo=UTC)
        with pytest.raises(BudgetRefused):
            await mine.spend(Purchase("x", 1))
    calendar.at = datetime(2025, 12, 31, tzinfo=UTC)
    assert mine.spent_this_month() == 10


async def test_spending_by_others_counts_in_the_month_in_which_it_was_reported(
    tmp_path: Path,
) -> None:
    calendar = Calendar()
    mine = budget(tmp_path, calendar, spent_this_month_usd=90.0)
    assert mine.left_this_month() == 10
    calendar.at = datetime(2026, 4, 2, tzinfo=UTC)
    assert mine.left_this_month() == 100


async def test_limits_of_the_config_file_hold_at_once(tmp_path: Path) -> None:
    mine = budget(tmp_path)
    await mine.spend(Purchase("x", 5))
    config = {"budget": {"monthly_limit_usd": 6, "single_tx_limit_usd": 20}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(BudgetRefused, match=r"\$1\.00 of \$6\.00"):
        await mine.spend(Purchase("x", 2))


@pytest.mark.parametrize("amount", [0, -1, "-0.01", "nan", "x", "", float("nan"), True, -1e308])
def test_what_is_no_amount_is_invalid(tmp_path: Path, amount: float | str) -> None:
    with pytest.raises(InvalidToolMeta):
        budget(tmp_path).reserve(Purchase("x", amount))


@pytest.mark.parametrize("amount", [1e300, "9" * 39, "1e15", float("inf"), 21])
def test_huge_amounts_are_never_reserved(tmp_path: Path, amount: float | str) -> None:
    mine = budget(tmp_path)
    with pytest.raises((BudgetRefused, InvalidToolMeta)):
        mine.reserve(Purchase("x", amount))
    assert mine.reservations() == []


@pytest.mark.parametrize(
    ("amount", "money"),
    [(0.1, "0.1"), ("5", "5.0"), (50, "50.0"), ("0.1234561", "0.123457"), ("1e-9", "0.000001")],
)
def test_amounts_are_decimals_rounded_up(amount: float | str, money: str) -> None:
    assert str(amount_of(amount)) == money


async def test_decimals_add_up(tmp_path: Path) -> None:
    mine = budget(tmp_path, monthly_limit_usd=1.0)
    for _ in range(10):
        mine.settle(mine.reserve(Purchase("x", 0.1)).id)
    assert mine.left_this_month() == 0


def test_a_reservation_is_settled_once(tmp_path: Path) -> None:
    mine = budget(tmp_path)
    made = mine.reserve(Purchase("x", 15))
    with pytest.raises(ApprovalNeeded):
        mine.settle(made.id)
    mine.approve(made.id)
    mine.settle(made.id)
    with pytest.raises(UnknownTool):
        mine.settle(made.id)
    assert len(mine.transactions()) == 1


# -- estimates -------------------------------------------------------------------------------------


async def test_estimate_is_settled_with_what_was_spent_be_it_less_or_more(tmp_path: Path) -> None:
    mine = budget(tmp_path, monthly_limit_usd=10)
    less = await mine.reserved(Purchase("coder", 4, "task 1", is_estimate=True))
    more = await mine.reserved(Purchase("coder", 4, "task 2", is_estimate=True))
    assert mine.left_this_month() == 2
    mine.settle(less.id, 0.25)
    mine.settle(more.id, "4.5")
    assert [one.amount_usd for one in mine.transactions()] == [Decimal("0.25"), Decimal("4.5")]
    assert mine.left_this_month() == Decimal("5.25")
    assert mine.reservations() == []


async def test_estimate_above_the_threshold_is_asked_as_the_most_that_is_paid(
    tmp_path: Path,
) -> None:
    asked = []

    async def answer(title: str, text: str) -> bool:
        asked.append(title)
        return True

    purchase = Purchase("coder", 12, "task 1", is_estimate=True)
    reservation = await budget(tmp_path).reserved(purchase, answer)
    assert asked == ["Pay up to $12.00 to coder?"]
    assert [one.state for one in budget(tmp_path).reservations()] == ["reserved"]
    assert budget(tmp_path).settle(reservation.id, 1).amount_usd == 1


async def test_after_a_crash_what_was_reported_is_in_the_log_and_the_rest_is_reserved(
    tmp_path: Path,
) -> None:
    mine = budget(tmp_path)
    reservation = await mine.reserved(Purchase("coder", 5, "task 1", is_estimate=True))
    mine.note_used(reservation.id, 1.5)
    mine.note_used(reservation.id, 1.25)  # a late report of an earlier time
    again = budget(tmp_path)
    (rest,) = again.recover()
    assert (rest.amount_usd, rest.used_usd) == (Decimal("3.5"), Decimal(0))
    assert rest.state == "reserved"
    assert [one.amount_usd for one in again.transactions()] == [Decimal("1.5")]
    assert again.left_this_month() == 95  # as before the crash
    assert budget(tmp_path).recover() == [rest]  # a second crash finds nothing to write
    assert len(again.transactions()) == 1


async def test_what_was_used_beyond_an_estimate_counts_before_it_is_settled(tmp_path: Path) -> None:
    mine = budget(tmp_path, monthly_limit_usd=10)
    reservation = await mine.reserved(Purchase("coder", 2, is_estimate=True))
    mine.note_used(reservation.id, 3)
    assert mine.left_this_month() == 7
    assert budget(tmp_path, monthly_limit_usd=10).recover() == []
    assert mine.left_this_month() == 7


async def test_reservation_whose_maker_was_cancelled_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = budget(tmp_path)
    begun, released = asyncio.Event(), threading.Event()
    loop, reserve = asyncio.get_running_loop(), mine.reserve

    def slowly(purchase: Purchase) -> Reservation:
        loop.call_soon_threadsafe(begun.set)
        assert released.wait(10)
        return reserve(purchase)

    monkeypatch.setattr(mine, "reserve", slowly)
    reserving = asyncio.create_task(mine.reserved(Purchase("coder", 5)))
    await begun.wait()
    reserving.cancel()
    await asyncio.wait([reserving])
    assert reserving.cancelled()
    given_back = asyncio.Event()
    cancel = mine.cancel

    def cancelled(reservation_id: str) -> None:
        cancel(reservation_id)
        given_back.set()

    monkeypatch.setattr(mine, "cancel", cancelled)
    released.set()
    await asyncio.wait_for(given_back.wait(), 10)
    assert mine.reservations() == []


# -- a state that is lost --------------------------------------------------------------------------


def lose(folder: Path, how: str) -> None:
    """Lose the state as disks and people do."""
    state = folder / "billing_state.json"
    if how == "missing":
        state.unlink()
    else:
        content = state.read_bytes()
        state.write_bytes({"empty": b"", "cut": content[: len(content) // 2]}[how])


@pytest.mark.parametrize("how", ["missing", "empty", "cut"])
async def test_lost_state_refuses_to_spend_until_a_person_rebuilds_it(
    tmp_path: Path, how: str
) -> None:
    """A month whose payments are forgotten would be spent a second time."""
    await budget(tmp_path).spend(Purchase("a", 10))
    await budget(tmp_path).spend(Purchase("b", 10))
    lose(tmp_path, how)
    for _ in range(2):  # also another process, and after the first error
        mine = budget(tmp_path)
        with pytest.raises(DataFileDamaged, match="the spending of this month is unknown"):
            await mine.spend(Purchase("c", 1))
        with pytest.raises(DataFileDamaged, match="arp tools budget --rebuild USD"):
            mine.spent_this_month()
    assert budget(tmp_path).rebuild() == 20
    mine = budget(tmp_path, monthly_limit_usd=25)
    with pytest.raises(BudgetRefused, match="are left of this month"):
        await mine.spend(Purchase("c", 6))
    await mine.spend(Purchase("c", 5))
    assert mine.left_this_month() == 0
    assert budget(tmp_path).rebuild("12.5") == Decimal("12.5")
    assert budget(tmp_path).spent_this_month() == Decimal("12.5")


async def test_what_is_paid_while_the_state_is_lost_is_in_the_log(tmp_path: Path) -> None:
    mine = budget(tmp_path)
    await mine.spend(Purchase("a", 10))

    async def pay() -> None:
        lose(tmp_path, "cut")

    with pytest.raises(DataFileDamaged):
        await mine.spend(Purchase("b", 5), pay=pay)
    with pytest.raises(DataFileDamaged):
        mine.log_paid(Purchase("c", 1))
    assert [one.provider for one in mine.transactions()] == ["a", "b", "c"]
    assert mine.rebuild() == 16


async def test_new_data_directory_and_lost_log_are_no_lost_state(tmp_path: Path) -> None:
    mine = budget(tmp_path)
    assert mine.spent_this_month() == 0
    await mine.spend(Purchase("a", 10))
    (tmp_path / "billing_log.json").unlink()
    assert budget(tmp_path).spent_this_month() == 10
