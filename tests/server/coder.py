"""An agent that offers its models as a command of the session, as an adapter of a runtime does."""

from __future__ import annotations

from arp import App, Command, CommandChoice, Turn

app = App(title="Coder")


@app.agent
async def code(turn: Turn) -> None:
    """Switches its model by `/model NAME`, and knows `/compact`."""
    if turn.command == "model":
        turn.state["model"] = turn.arguments
    now = turn.state.get("model", "small")
    choices = [
        CommandChoice(name, label, current=name == now)
        for name, label in (("small", "Small 5"), ("large", "Large 5"))
    ]
    turn.set_commands(
        [
            Command("model", "Switches the model", choices=tuple(choices)),
            Command("compact", "Makes the context smaller", "what to keep"),
        ]
    )
    await turn.say(f"{turn.command or 'text'} with {now}")


@app.command("export", hint="csv or json")
async def export(turn: Turn) -> None:
    """Exports the session."""
    await turn.say(f"exported {turn.arguments}")
