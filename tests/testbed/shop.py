"""Apps that the tests of `arp.testing` talk to."""

from __future__ import annotations

from arp import Access, App, IncomingConnection, QuestionExpired, Turn, ui


async def sales(turn: Turn) -> None:
    """Say something, run a tool, and show what came of it."""
    await turn.say("Let me look.")
    async with turn.tool("query", {"table": "sales"}) as call:
        call.result("2 rows")
    bar = ui.chart("bar", labels=["Jan", "Feb"], datasets=[ui.dataset("Sold", [3, 5])])
    turn.show(ui.group([bar]))


async def delete(turn: Turn) -> None:
    """Ask for a yes within a minute."""
    try:
        yes = await turn.confirm("Delete all?", timeout_s=60)
    except QuestionExpired:
        await turn.say("Nobody answered.")
    else:
        await turn.say("Deleted." if yes else "Kept.")


async def order(turn: Turn) -> None:
    """Ask three questions of three kinds."""
    fields = [ui.field("name", required=True), ui.field("count", field_type="number")]
    given = await turn.ask(ui.form(fields, title="Your order"), name="order")
    size = await turn.ask(ui.choices(["small", "large"], title="Which size?"))
    note = await turn.ask(ui.text_input(label="A note?"))
    await turn.say(f"{given['count']} {size} for {given['name']}: {note}")


async def pay(turn: Turn) -> None:
    """Run a tool that needs permission."""
    async with turn.tool("pay", {"amount": 3}) as call:
        approval = await call.ask_permission("Pay 3?", rule="always ask")
        call.result("paid" if approval.allowed else f"not paid: {approval.reason}")


async def who(turn: Turn) -> None:
    """Say who asks."""
    await turn.say(f"{turn.user.name} {turn.user.roles} {turn.renderer.locale}")


async def fail(turn: Turn) -> None:
    """Fail."""
    raise ValueError("no stock")


WORK = {work.__name__: work for work in (sales, delete, order, pay, who, fail)}


def shop() -> App:
    """An app that says, shows, asks and fails, by what its user says."""
    app = App(title="Shop")

    @app.agent
    async def keeper(turn: Turn) -> None:
        """Does what it is told."""
        work = WORK.get(turn.text)
        if work is not None:
            await work(turn)
        elif turn.files:
            content = await turn.read_file(turn.files[0])
            await turn.say(f"{turn.files[0].name}: {content.decode()}")
        else:
            await turn.say(f"You have said {len(turn.messages())} things before.")

    @app.on_answer("order")
    async def ordered(turn: Turn, order: dict[str, str]) -> None:
        await turn.say(f"After the restart: {order['name']}")

    return app


def member(connection: IncomingConnection) -> str | None:
    """Know who has a cookie of the members."""
    return {"a-secret": "ann", "b-secret": "bob"}.get(connection.cookies.get("member", ""))


def members_only() -> App:
    """An app for whoever has signed in elsewhere."""
    app = App(access=Access(authenticate=member))

    @app.agent
    async def greet(turn: Turn) -> None:
        """Says who asks."""
        await turn.say(f"Hello {turn.user.name}")

    return app
