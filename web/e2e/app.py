"""An agent for the browser tests: the first word of the user's text selects what it does."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from arp import App, Command, CommandChoice, Component, HubSettings, ToolFailed, Turn, ui

app = App(
    "Harbour",
    description="Answers questions about ships, berths and tides.",
    suggestions=["hello", "table", "count 300"],
)

Does = Callable[[Turn, str], Awaitable[None]]

LONG = Path(__file__).with_name("long.md")


@app.agent
async def agent(turn: Turn) -> None:
    """Call the function that the first word names; repeat any other text."""
    if turn.files:
        sizes = [f"{ref.name}: {len(await turn.read_file(ref))} bytes" for ref in turn.files]
        await turn.say("Got " + ", ".join(sizes))
        return
    if turn.input.input_type == "selection":
        await turn.say(f"You took {turn.input.data['selected'][0]}.")
        return
    if turn.input.source_component is not None:  # a question of a turn that ended in a restart
        given = turn.input.data.get("action") or turn.input.data.get("fields")
        await turn.say(f"Answered later: {json.dumps(given)}.")
        return
    name, _, rest = turn.text.partition(" ")
    await DOES.get(name, echo)(turn, rest)


strict = App("Narrow harbour", settings=HubSettings(policy="reject"))
"""The same agent with an app that refuses inputs while a turn runs."""
strict.agent(agent)

office = App("Harbour office", description="Three desks, one door.", suggestions=["hello"])
"""An app with several agents."""
office.agent("ships", title="Ships", description="Knows every ship by name.")(agent)


@office.agent("tides", title="Tides", suggestions=["high water", "low water"])
async def tide_desk(turn: Turn) -> None:
    """Tells when the water is high."""
    await turn.say(f"Tides heard: {turn.text}")


@office.agent("رسو", title="مكتب الرسو")
async def berth_desk(turn: Turn) -> None:
    """Knows the berths."""
    await turn.say(f"Berths heard: {turn.text}")


coder = App("Coding harbour", description="Models, modes and what an agent CLI knows.")
"""An app with commands of the session, as an adapter of an agent runtime offers them."""

CHOICES = {
    "model": ("Model", {"small": "Small 5", "large": "Large 5", "largest": "Large 5, long memory"}),
    "mode": ("Mode", {"ask": "Ask first", "plan": "Plan only"}),
    "provider": ("Provider", {"here": "This machine", "there": "Another machine"}),
}


@coder.agent("coder", title="Coder")
async def coder_desk(turn: Turn) -> None:
    """Switch model, mode and provider; repeat everything else."""
    if turn.command in CHOICES:
        turn.state[turn.command] = turn.arguments
    offered = [Command("compact", "Makes the context smaller", hint="what to keep")]
    for name, (title, labels) in CHOICES.items():
        now = turn.state.get(name, next(iter(labels)))
        choices = [
            CommandChoice(value, label, f"About {value}", current=value == now)
            for value, label in labels.items()
        ]
        offered.append(Command(name, title, choices=tuple(choices)))
    turn.set_commands([] if turn.text == "no commands" else offered)
    await turn.say(f"Coder heard: {turn.text}")


@coder.command("mode")
async def switch_mode(turn: Turn) -> None:
    """Switch the mode."""
    await coder_desk(turn)
    await turn.say(" (by the function of the app)")


async def echo(turn: Turn, _: str) -> None:
    """Repeat the user's text."""
    await turn.say(f"You said: **{turn.text}**")


async def count(turn: Turn, rest: str) -> None:
    """Count to a number, one line every 10 ms."""
    for number in range(1, int(rest or "300") + 1):
        await turn.say(f"{number}\n\n")
        await asyncio.sleep(0.01)


async def burst(turn: Turn, rest: str) -> None:
    """Stream a long text in a number of pieces, at a rate per second (0: all at once)."""
    pieces, _, rate = rest.partition(" ")
    text = LONG.read_text(encoding="utf-8")
    count = int(pieces)
    size = max(1, -(-len(text) // count))
    pause = 0.0 if int(rate or "0") == 0 else 1 / int(rate)
    began = asyncio.get_running_loop().time()
    for at in range(0, len(text), size):
        await turn.say(text[at : at + size])
        if pause:
            due = began + (at // size) * pause
            await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))


async def table(turn: Turn, _: str) -> None:
    """Show a table."""
    rows = [["Oslo", 709], ["Bergen", 292], ["Zürich", 443]]
    turn.show(ui.table(["City", "People"], rows, title="Cities", sortable=True, searchable=True))


async def mixed(turn: Turn, _: str) -> None:
    """Show text, a tool, a chart, text, a table and text."""
    await turn.say("First some text. ")
    async with turn.tool("look", {"where": "here", "depth": 2}):
        await asyncio.sleep(0.05)
    turn.show(
        ui.chart("bar", labels=["a", "b"], datasets=[ui.dataset("One", [1, 2])], title="Bars")
    )
    await turn.say("Between the two. ")
    await table(turn, "")
    await turn.say("And the end.")


async def tides(turn: Turn, _: str) -> None:
    """Write headings, lists and code, and show a card."""
    await turn.say(
        "## Tides\n\nHigh water is at **06:12**, see the [table](https://example.org/tides).\n\n"
        "- *spring* tide\n- `neap` tide\n\n```python\nprint(tide('06:12'))  # metres\n```\n"
    )
    turn.show(
        ui.status_card("warning", "Berth 4 is closed", message="Until the crane is repaired.")
    )


async def tools(turn: Turn, _: str) -> None:
    """Call one tool twice at the same time; one call fails."""

    async def use(number: int, pause: float) -> None:
        async with turn.tool("fetch", {"number": number}):
            await asyncio.sleep(pause)
            if number == 2:
                raise ValueError("no such page")

    await asyncio.gather(use(1, 0.6), use(2, 0.2), return_exceptions=True)
    await turn.say("Both are done.")


async def sql(turn: Turn, _: str) -> None:
    """Run a database query of more than a second; its result is a list of rows."""
    statement = "SELECT name, people\nFROM cities\nWHERE name <> 'O\"slo'\n  AND people > 300"
    args = {
        "sql": statement,
        "limit": 2**53 + 1,
        "note": "مدن الشمال",
        "options": {"explain": False},
    }
    async with turn.tool("run_sql", args) as tool:
        await asyncio.sleep(1.2)
        tool.result([{"name": "Oslo", "people": 709}, {"name": "Zürich <b>", "people": 443}])
    await turn.say("Two cities.")


async def load(turn: Turn, rest: str) -> None:
    """Read a number of files, half a second each, and report the progress."""
    count = int(rest or "3")
    async with turn.tool("load", {"folder": "/srv/reports"}) as tool:
        for number in range(count):
            tool.progress(f"Reading report-{number + 1}.csv", done=number, total=count)
            await asyncio.sleep(0.5)
        tool.progress("Sorting what was found\u202e")
        await asyncio.sleep(0.5)
        tool.result({"files": count, "newest": {"name": f"report-{count}.csv", "bytes": 78}})
    await turn.say("All are read.")


async def long_result(turn: Turn, rest: str) -> None:
    """Call three tools: one returns a number of lines, one runs a script, one fails."""
    async with turn.tool("read_log", {"path": "/var/log/harbour.log"}) as tool:
        tool.result("\n".join(f"line {number} {'x' * 60}" for number in range(int(rest or "100"))))
    code = "import sys\n\nfor berth in sys.argv:\n    print(berth)\n"
    async with turn.tool("run_code", {"language": "python", "code": code}) as tool:
        tool.result("berth 1\nberth 2\u202e")
    with suppress(ToolFailed):
        async with turn.tool("shut_gate", {"command": "gate --shut 4"}) as tool:
            tool.fail("the gate is stuck")
    await turn.say("That is all.")


async def toil(turn: Turn, rest: str) -> None:
    """Call a tool that takes a number of seconds, without any text meanwhile."""
    async with turn.tool("dig", {"deep": True}):
        await asyncio.sleep(float(rest))
    await turn.say("Found it.")


async def confirm(turn: Turn, _: str) -> None:
    """Ask yes or no."""
    sure = await turn.confirm("Really?", confirm_label="Do it", deny_label="Leave it")
    await turn.say("It is done." if sure else "It was left.")


async def choices(turn: Turn, _: str) -> None:
    """Offer two choices, and do not wait for the answer."""
    turn.show(ui.choices(["Rain", "Wind"], title="What next?"))


async def rows(turn: Turn, rest: str) -> None:
    """Ask for rows of a table that can be sorted and filtered."""
    cities = [["Oslo", 709], ["Bergen", 292], ["Zürich", 443]]
    table = ui.table(
        "Cities", ["City", "People"], cities, sortable=True, searchable=True, selectable="many"
    )
    await turn.say(f"Rows {await turn.ask(table)}.")


async def fail(turn: Turn, rest: str) -> None:
    """Fail after a number of seconds."""
    await asyncio.sleep(float(rest or "0"))
    raise RuntimeError("a secret of the server")


async def fail_once(turn: Turn, rest: str) -> None:
    """Fail after a number of seconds, but only in the first turn of a chat."""
    if turn.id == "t1":
        await fail(turn, rest)
    await echo(turn, rest)


async def hostile(turn: Turn, _: str) -> None:
    """Write text that would do harm if it were shown as HTML."""
    await turn.say("<script>document.title='broken'</script>\n\n")
    await turn.say("<img src=x onerror=document.title='broken'>\n\n")
    await turn.say(
        "[click](javascript:document.title='broken') ![pixel](https://example.org/pixel.png) "
    )
    await turn.say("[bank.example](https://evil.example/login)")


async def show(turn: Turn, rest: str) -> None:
    """Show the components that are given as JSON."""
    await turn.say("Here:")
    for at, given in enumerate(json.loads(rest)):
        turn.show(Component(f"{turn.id}-c{at}", given["type"], given["props"]))


async def cards(turn: Turn, rest: str) -> None:
    """Show a number of cards in one commit."""
    turn.show(*(ui.status_card("info", f"card {at}") for at in range(int(rest))))


async def board(turn: Turn, rest: str) -> None:
    """Show a card, which later turns change."""
    if rest:
        turn.patch("board", "props.title", rest)
    else:
        turn.show(ui.status_card("info", "Board", id="board"))


HUGE = {
    "prose": "A line with **bold** words and [a link](https://example.org/).\n\n" * 76_000,
    "line": "a" * 1_000_000,
    "lists": "- " * 10_000 + "end",
    "quotes": "> " * 10_000 + "end",
    "stars": "*a_ " * 15_000,
    "brackets": "[" * 30_000,
    "ticks": " ".join("`" * number for number in range(200)),
    "pipes": ("| - " * 2_000 + "\n") * 20,
}
"""Texts that are very large, or very slow to parse with a naive parser."""


async def huge(turn: Turn, rest: str) -> None:
    """Stream one of the huge texts."""
    text = HUGE[rest]
    for at in range(0, len(text), 20_000):
        await turn.say(text[at : at + 20_000])


async def swap(turn: Turn, rest: str) -> None:
    """Change two components together, many times: a page must never show one changed alone."""
    rounds = int(rest or "50")
    left, right = f"{turn.id}-l", f"{turn.id}-r"
    turn.show(ui.status_card("info", "0", id=left), ui.status_card("info", "0", id=right))
    for number in range(1, rounds + 1):
        turn.patch(left, "props.title", str(number))
        turn.patch(right, "props.title", str(number))
        await asyncio.sleep(0.01)


async def permission(turn: Turn, rest: str) -> None:
    """Ask for permission to change a file."""
    args = {"path": "/etc/hosts", "before": "one\ntwo\n", "after": "one\nthree\n"}
    name = "edit_\u202efile" if rest == "hidden" else "edit_file"
    if rest == "two":
        await asyncio.gather(edit(turn, "one"), edit(turn, "two"))
        return
    if rest == "long":
        await edit(turn, "long", {f"option {n}": n for n in range(30)})
        return
    async with turn.tool(name, args) as tool:
        may = await tool.approve(
            "Change /etc/hosts?", rule="files-need-leave", session_rule="changes of files"
        )
    await turn.say("It was changed." if may else "It was left alone.")


async def edit(turn: Turn, name: str, options: dict[str, int] | None = None) -> None:
    """Ask for permission to run an editable command, and write which one would run."""
    args = {"command": f"echo {name}", "n": 1, **(options or {})}
    async with turn.tool("shell", args) as tool:
        approval = await tool.ask_permission(f"Run {name}?", rule="commands", editable=True)
    await turn.say(f"{name}: {approval.decision} `{approval.input}`\n\n")


async def run_files(turn: Turn, rest: str) -> None:
    """Ask for permission to run code, with a number of files that it may read."""
    files = {f"src/part-{n}.py": f"{n} bytes, sha256 {n:064x}" for n in range(int(rest))}
    async with turn.tool("run_code", {"command": "python main.py"}) as tool:
        asked = {"command": "python main.py", "files": files}
        approval = await tool.ask_permission("Run main.py?", rule="generated-code", input=asked)
    await turn.say(f"It is {approval.decision}.")


async def soon(turn: Turn, rest: str) -> None:
    """Ask for permission with a deadline after a number of seconds."""
    async with turn.tool("shell", {"command": "date"}) as tool:
        approval = await tool.ask_permission("Run it?", rule="all", timeout_s=float(rest or "2"))
    await turn.say(f"It is {approval.decision}.")


async def sources(turn: Turn, _: str) -> None:
    """Cite sources; one mark is in the text of a link, and one has no source."""
    await turn.say("Rain fell in Seattle [1], and more of it in Bergen [2][3]. ")
    await turn.say("Nothing says [7], nor [see [2]](https://example.org/bergen).")
    listed = [
        ui.source("Rain in Seattle", "https://example.org/rain", "It rains on 160 days."),
        ui.source("Bergen", "https://example.org/bergen"),
        {"title": "A table", "url": "javascript:document.title='broken'"},
    ]
    turn.show(ui.custom("x-arp-sources", {"sources": listed}, fallback=ui.text("a list")))


async def ponder(turn: Turn, rest: str) -> None:
    """Think, call a tool that takes a number of seconds, and report the end."""
    turn.think("Where to look first?")
    async with turn.tool("dig", {"depth": 3}):
        await asyncio.sleep(float(rest or "2"))
    await turn.say("Found it.")


async def shown(turn: Turn, rest: str) -> None:
    """Write how each renderer shows a component."""
    await turn.say(", ".join(turn.shown_as(rest).values()))


async def pick(turn: Turn, _: str) -> None:
    """Ask for one of two choices."""
    await turn.say(f"Took {await turn.ask(ui.choices(['Rain', 'Wind'], title='Which?'))}.")


async def form(turn: Turn, _: str) -> None:
    """Ask for a name, and continue with it."""
    answer = await turn.ask(ui.form([ui.field("name", label="Name")], submit_label="Go on"))
    await turn.say(f"Hello {answer['name']}.")


async def long(turn: Turn, _: str) -> None:
    """Ask with a form that is higher than the window."""
    fields = [ui.field(f"n{n}", label=f"Number {n}") for n in range(20)]
    await turn.say(f"{len(await turn.ask(ui.form(fields, submit_label='Go on')))} given.")


async def keep(turn: Turn, _: str) -> None:
    """Save two files; link one and show the other."""
    report = await turn.save_file("report.txt", b"Nothing to report.", "text/plain")
    square = await turn.save_file("square.png", SQUARE, "image/png")
    await turn.say(f"See the [report]({turn.file_url(report)}).")
    turn.show(ui.image(turn.file_url(square), "A square"))


SQUARE = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR4nGP4z8AARAwQCgAf7gP9i18U1AAAAABJRU5E"
    "rkJggg=="
)


DOES: dict[str, Does] = {
    "board": board,
    "burst": burst,
    "cards": cards,
    "choices": choices,
    "confirm": confirm,
    "count": count,
    "fail": fail,
    "fail-once": fail_once,
    "form": form,
    "hostile": hostile,
    "huge": huge,
    "keep": keep,
    "long": long,
    "load": load,
    "long-result": long_result,
    "mixed": mixed,
    "permission": permission,
    "pick": pick,
    "soon": soon,
    "rows": rows,
    "run-files": run_files,
    "ponder": ponder,
    "show": show,
    "shown": shown,
    "sources": sources,
    "sql": sql,
    "swap": swap,
    "table": table,
    "toil": toil,
    "tides": tides,
    "tools": tools,
}


@app.command("export", description="Writes what was found to a file", hint="csv or json")
async def export(turn: Turn) -> None:
    """Write the format of the export; nothing is exported."""
    await turn.say(f"Exported as {turn.arguments or 'csv'}.")


@app.command("explain", description="Says what it does")
async def explain(turn: Turn) -> None:
    """Explain what it does."""
    await turn.say("It counts.")
