"""An agent that explores any SQLite or CSV file: `arp serve examples/explorer/app.py`.

This file routes each input to the function that answers it. Reading order from here:
`questions` (what the user means), `asking` (how it runs), `replies` and `offers` (what is shown),
`uploads`, and `model`, which is used only if a language model is configured.
"""

from __future__ import annotations

import os

from arp import App, HubSettings, Turn, ui
from asking import compare_tables, redraw, run_form, run_query
from asks import (
    Ask,
    CompareTables,
    Describe,
    Export,
    Help,
    ListTables,
    OpenForm,
    Redraw,
    RunQuery,
    SmallTalk,
    UseDataset,
)
from commands import understand_command
from connection import quote_name
from dataset import Dataset
from errors import ExplorerError, ModelFailed
from model import configured_model
from offers import export_last, offer_export, suggest_next
from pace import say
from questions import understand_question
from replies import (
    COMMANDS,
    describe_table,
    error_card,
    not_understood,
    show_help,
    show_tables,
    small_talk,
)
from uploads import receive_files
from workspace import Workspace, new_workspace

app = App(
    title="Data Explorer",
    description="Ask about the data in plain words, or in SQL.",
    suggestions=[
        "Show the average temperature by month",
        "Top 5 cars by horsepower",
        "How many rainy days by year",
        "Tables",
        "Help",
    ],
    # A new question stops the one before, so it never waits behind a slow query or an open offer.
    settings=HubSettings(policy="interrupt"),
)
model = configured_model(app, os.environ)


@app.agent
async def explore(turn: Turn) -> None:
    """Explore any SQLite or CSV file: answer a question, run SQL, or import a file."""
    try:
        if "workspace" not in turn.cache:
            turn.cache["workspace"] = await new_workspace()
        await respond(turn, turn.cache["workspace"])
    except ExplorerError as error:
        turn.show(error_card(error))


for name, description, hint in COMMANDS:  # renderers list them behind a slash
    app.command(name, description=description, hint=hint)(explore)


async def respond(turn: Turn, workspace: Workspace) -> None:
    """Choose who answers: an import, a command, the model, or the rules for questions."""
    if turn.files:
        await receive_files(turn, workspace)
    text = text_of(turn)
    if not text:
        if not turn.files:
            show_help(turn, workspace)
        return
    for dataset in workspace.in_order():
        ask = understand_command(text, dataset.schema)
        if ask is not None:
            await follow(turn, workspace, dataset, ask)
            return
    if not await _answered_by_model(turn, workspace):
        await _answer_by_rules(turn, workspace, text)


def text_of(turn: Turn) -> str:
    """Return the text of the user, or the choice that they clicked, which reads like a command.

    `/help` becomes `help`: every command works with and without the slash.
    """
    if turn.input.input_type == "selection":
        selected = turn.input.data.get("selected") or [""]
        return str(selected[0])
    return turn.text.strip().removeprefix("/")


async def _answered_by_model(turn: Turn, workspace: Workspace) -> bool:
    """Return whether the model answered; if it fails, show a card, and the rules answer."""
    if model is None:
        return False
    try:
        chart = await model.answer(turn, workspace)
    except ModelFailed as error:
        turn.show(error_card(error))
        return False
    if chart is not None:
        await offer_export(turn, workspace)
    return True


async def _answer_by_rules(turn: Turn, workspace: Workspace, text: str) -> None:
    for dataset in workspace.in_order():
        ask = understand_question(text, dataset.schema)
        if ask is not None:
            chart = await run_query(turn, workspace, ask)
            if chart is not None:
                await offer_export(turn, workspace)
            suggest_next(turn, chart)
            return
    await not_understood(turn, workspace)


async def follow(turn: Turn, workspace: Workspace, dataset: Dataset, ask: Ask) -> None:
    """Carry out a command.

    Raises:
        ExplorerError: It is not possible; the user sees a card with the reason.
    """
    match ask:
        case Help():
            show_help(turn, workspace)
        case SmallTalk(kind):
            await small_talk(turn, workspace, kind)
        case ListTables():
            await show_tables(turn, workspace)
            turn.show(ui.choices(_describes(dataset), title="Look into one"))
        case Describe(table):
            await describe_table(turn, dataset, table)
        case RunQuery():
            suggest_next(turn, await run_query(turn, workspace, ask))
        case Redraw(wish):
            await redraw(turn, workspace, wish)
        case OpenForm(table):
            suggest_next(turn, await run_form(turn, workspace, dataset, table))
        case CompareTables(old, new):
            await compare_tables(turn, workspace, old, new)
        case Export(name, table):
            if table:
                sql = f"SELECT * FROM {quote_name(table)}"
                await run_query(turn, workspace, RunQuery(sql, table, "none"))
            await export_last(turn, workspace, name)
        case UseDataset(name):
            await _use(turn, workspace, name)


def _describes(dataset: Dataset) -> list[str]:
    return [f"describe {table.name}" for table in dataset.schema.tables[:6]] or ["help"]


async def _use(turn: Turn, workspace: Workspace, name: str) -> None:
    if name in workspace.datasets:
        workspace.current = name
    else:
        workspace.current = workspace.find_table(name)[0].name
    await say(turn, f"From now on I ask **{workspace.current}** first.")
