"""An agent with every kind of message: text, changes of components, questions, a permission."""

from __future__ import annotations

from arp import App, Turn, ui

app = App(title="Offers")


@app.agent
async def offers(turn: Turn) -> None:
    """Shows offers, changes them, and asks."""
    match turn.text:
        case "fail":
            raise RuntimeError("inner workings")
        case "order":
            async with turn.tool("order", {"item": "lamp"}) as tool:
                is_allowed = await tool.approve("Order it?", rule="orders")
            await turn.say("Ordered." if is_allowed else "Not ordered.")
        case "changes":
            await turn.say("First. ")
            for name in ("one", "two", "three"):
                turn.show(ui.text(name, id=name))
            await turn.say("Last. ")
            turn.patch("two", "props.content", "TWO")
            turn.remove("one")
            turn.insert(ui.text("zero", id="zero"), after=None)
            turn.reorder("three", "zero")
        case _:
            await turn.say("Here they are. ")
            turn.show(ui.table(["Item", "Cost"], [["Lamp", "12"]], id="offers"))
            sure = await turn.confirm("Buy a lamp?")
            await turn.say("Bought. " if sure else "Kept. ")
            colour = await turn.ask(ui.choices(["red", "green"], title="Colour?"))
            await turn.say(f"It is {colour}.")
