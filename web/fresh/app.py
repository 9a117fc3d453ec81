"""An agent that shows every component, and one with a type that only the application knows."""

from __future__ import annotations

from arp import App, Component, Turn, ui
from arp.protocol.json_value import JsonObject

app = App(title="Fresh")

CITIES = ui.table(["City", "People"], [["Oslo", 709], ["Bergen", 292]], title="Cities")

ALL: list[Component] = [
    ui.text("Some text."),
    ui.markdown("Some **strong** text."),
    ui.status_card("success", "Saved", message="All of it."),
    CITIES,
    ui.code_block("print(1)", language="python", title="Code"),
    ui.diff("a\nb\n", "a\nc\n", title="Change"),
    ui.key_value({"Name": "Ada"}, title="Facts"),
    ui.progress([ui.step("Load", "done"), ui.step("Draw", "active")], title="Steps"),
    ui.chart("bar", labels=["a", "b"], datasets=[ui.dataset("One", [1, 2])], title="Bars"),
    ui.image("data:image/png;base64,iVBORw0KGgo=", "An icon"),
    ui.product_cards([ui.card("Lamp", price="9 €")], title="Products"),
    ui.form([ui.field("name", label="Name")], title="Form"),
    ui.confirm("Really?"),
    ui.choices(["Rain", "Wind"], title="What next?"),
    ui.text_input(label="More?"),
    ui.group([ui.text("First"), ui.text("Second")]),
    ui.tabs([ui.tab("One", ui.text("Inside"))]),
    ui.split(ui.text("Left"), ui.text("Right")),
]

BAD = "<img src=x onerror=\"document.title='broken'\">"
RUN = "document.title='broken'"

NAMES: JsonObject = {
    "innerHTML": BAD,
    "outerHTML": BAD,
    ".innerHTML": BAD,
    "dangerouslySetInnerHTML": {"__html": BAD},
    "v-html": BAD,
    "srcdoc": BAD,
    "srcDoc": BAD,
    "SRCDOC": BAD,
    "onclick": RUN,
    "onClick": RUN,
    "ONCLICK": RUN,
    "^onclick": RUN,
    "@click": RUN,
    "onerror": RUN,
    "style": "position: fixed; inset: 0",
    "STYLE": "position: fixed; inset: 0",
    "class": "evil",
    "className": "evil",
    "slot": "evil",
    "is": "x-evil",
    "key": "evil",
    "ref": "evil",
    "children": "evil",
    "constructor": "evil",
    "__proto__": {"evil": "evil"},
}
"""Names with a meaning in the DOM or in a framework."""


@app.agent
async def agent(turn: Turn) -> None:
    """Do what the text names, and report the actions of components."""
    data = turn.input.data
    if turn.input.input_type == "action":
        await turn.say(f"Heard {data['action']} {data.get('payload')}")
    elif turn.text == "all":
        for component in ALL:
            turn.show(component)
        await turn.say("That is all.")
    elif turn.text == "names":
        turn.show(ui.custom("x-demo-names", {**NAMES, "stars": 1}, fallback=ui.text("none")))
        await turn.say("Those were all.")
    elif turn.text == "rating":
        turn.show(ui.custom("x-demo-rating", {"stars": 4}, fallback=ui.text("4 of 5")))
    elif turn.text == "broken":
        turn.show(ui.custom("x-demo-rating", {"stars": -1}, fallback=ui.text("none")))
        await turn.say("Behind it.")
    else:
        await turn.say(f"You said: **{turn.text}**")
