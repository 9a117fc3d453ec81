"""An agent that shows integers which a reader with doubles would round, in every place for one."""

from __future__ import annotations

from arp import App, Turn, ui

LARGE = 2**53 + 1
LARGEST = 2**63 - 1

app = App("Ids")


@app.agent
async def ids(turn: Turn) -> None:
    """Show them, ask for one, and name the next one."""
    turn.shared_state = {"last_id": LARGEST, "all": [LARGE, 1]}
    turn.show(ui.table(["id"], [[LARGE], [-LARGEST - 1]], id="made", sortable=True))
    plain = {"headers": ["id"], "rows": [[LARGE], [2]]}
    turn.show({"id": "plain", "type": "table", "props": plain})
    turn.show(ui.key_value({"id": LARGEST}, id="facts"))
    turn.show(ui.custom("x-test-ids", {"ids": [LARGE]}, fallback=ui.text("ids"), id="own"))
    await turn.say("Here they are.")
    turn.patch("plain", "props.rows.1.0", LARGEST)
    options = [ui.option("old", LARGE), ui.option("new", LARGEST)]
    taken = await turn.ask(ui.choices(options, title="Which?", id="which"))
    assert isinstance(taken, int)
    age = ui.field("age", label="Age", field_type="number")
    given = await turn.ask(ui.form([age], title="How old?", id="form"))
    await turn.say(f"It is {taken - 1!r} and {given['age']!r}.")
