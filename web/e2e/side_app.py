"""An agent for tests that shows components beside the conversation, and can fail."""

from __future__ import annotations

from arp import App, Turn, ui

app = App("Side by side")


@app.agent
async def agent(turn: Turn) -> None:
    """Do what the first word of the text names."""
    name, _, rest = turn.text.partition(" ")
    match name:
        case "side":
            turn.show(
                ui.key_value(
                    [("state", rest or "green"), ("tests", 12)], title="Build", id="build"
                ),
                surface="build_status",
            )
        case "more":
            turn.show(ui.text(f"More: {rest}", id=f"more-{rest}"), surface="build_status")
        case "change":
            turn.patch("build", "props.items.0.value", rest, surface="build_status")
        case "second":
            turn.show(ui.text("On the second", id="other"), surface="side")
        case "ask":
            question = ui.choices(["left", "right"], title="Which way?", id="way")
            answer = await turn.ask(question, surface="build_status")
            await turn.say(f"You took {answer}.")
            return
        case "fail":
            raise RuntimeError("a secret of the server " + "x" * 300)
    await turn.say("\n\n".join(f"Line {number} of {turn.text}." for number in range(1, 4)))
