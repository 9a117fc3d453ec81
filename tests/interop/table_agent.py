"""Shows a table and a chart that ask for nothing, and says which rows were selected."""

from arp import App, Turn, ui

app = App(title="Offers")


@app.agent
async def offers(turn: Turn) -> None:
    if turn.text == "count":
        for number in range(40):
            await turn.say(f"{number} ")
            turn.show(ui.text(str(number), id="n"))
        return
    if turn.text:
        turn.show(ui.table(["Item", "Cost"], [["Lamp", "12"], ["Desk", "80"]], id="t1"))
        turn.show(
            ui.chart(
                "bar", labels=["a", "b"], datasets=[{"label": "Cost", "data": [1, 2]}], id="c1"
            )
        )
        await turn.say("Shown.")
        return
    await turn.say(f"selected {turn.input.data['selected']} of {turn.input.source_component}")
