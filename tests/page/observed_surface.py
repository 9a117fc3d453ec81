"""An agent that says what it hears of a surface beside the conversation: focus, size, states."""

from arp import App, Turn, ui
from arp.protocol.messages import Viewport

app = App(title="Observed")


@app.agent
async def observe(turn: Turn) -> None:
    """Show a surface, and say what its callbacks get until somebody closes it."""
    side = turn.surface("side", title="Side")

    @side.on_focus
    async def focused(is_focused: bool) -> None:
        await turn.say(f"focus {is_focused}. ")

    @side.on_configure
    async def configured(size: Viewport, states: tuple[str, ...]) -> None:
        await turn.say(f"size {size.width} x {size.height}, {' '.join(states)}. ")

    side.show(ui.table(["Name"], [["Ada"], ["Grace"]], selectable="one", id="people"))
    reason = await side.closed
    await turn.say(f"closed by {reason}.")
