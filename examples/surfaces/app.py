"""Orders: a popup over the selected row, an overlay that closes after a time, a side surface.

arp serve examples/surfaces/app.py
"""

from arp import DECLINED, App, Component, Turn, ui

ORDERS = [
    ["1001", "Ada", "120.00", "open"],
    ["1002", "Grace", "89.50", "open"],
    ["1003", "Edsger", "43.20", "open"],
]

app = App(title="Orders", suggestions=["Show the orders"])


@app.agent
async def orders(turn: Turn) -> None:
    """Show the orders, or handle the order that the user has selected."""
    if turn.input.source_component == "orders":
        await handle(turn, turn.input.data["selected"][0])
        return
    await turn.say("Choose an order.")
    turn.show(table(turn))
    # Beside the conversation; it stays open after this turn, until a user closes it.
    activity = turn.surface("activity", title="Activity")
    activity.show(ui.text("Nothing has happened yet.", id="log"))


async def handle(turn: Turn, row: int) -> None:
    """Ask in a popup over the row what to do, and report the result in an overlay."""
    number, customer, amount, _ = rows(turn)[row]
    popup = turn.popup(
        ui.key_value([("Customer", customer), ("Amount", amount)]),
        over="orders",
        row=row,
        title=f"Order {number}",
    )
    activity = turn.surface("activity", title="Activity")

    @activity.on_close
    async def closed(reason: str) -> None:
        if reason == "user":
            await turn.say("You closed the activity. ")

    # A user who dismisses the popup declines its question.
    what = ui.choices(["Ship", "Refund"], id=f"do-{number}")
    answer = await turn.ask(what, can_decline=True, surface=popup.name)
    popup.close()
    if answer is DECLINED:
        await turn.say(f"Order {number} stays as it is.")
    else:
        status = "shipped" if answer == "Ship" else "refunded"
        turn.state["rows"] = [[*one[:3], status] if one[0] == number else one for one in rows(turn)]
        done = ui.status_card("success", f"Order {number} is {status}")
        turn.overlay(done, anchor="top-right", timeout_ms=3000)
        if activity.is_open:
            activity.show(ui.text(f"Order {number} is {status}.", id="log"))
        await turn.say(f"Order {number} is {status}.")
    turn.show(table(turn))  # in its old place, to choose again


def rows(turn: Turn) -> list[list[str]]:
    """Return the present orders of this chat."""
    kept: list[list[str]] = turn.state.get("rows", ORDERS)
    return kept


def table(turn: Turn) -> Component:
    """Return the table of the orders, with one selectable row."""
    headers = ["Order", "Customer", "Amount", "Status"]
    return ui.table(headers, rows(turn), title="Orders", selectable="one", id="orders")
