"""What follows an answer: an export if the user says yes, and suggestions."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

from arp import Component, Turn, ui
from arp.api import ResourceLimit
from charts import ChartPlan
from errors import ExplorerError
from export import EXPORT_LIMITS, export_directory, free_path, write_csv
from findings import size_of
from pace import say
from workspace import Answer, Workspace


async def offer_export(turn: Turn, workspace: Workspace) -> None:
    """Offer to write the last result to a file, until the user says no once.

    Raises:
        ExportFailed: It could not be written.
    """
    if workspace.last is not None and workspace.offers_export:
        workspace.offers_export = await export(turn, workspace.last, "")


async def export_last(turn: Turn, workspace: Workspace, name: str) -> None:
    """Write the last result to a file if the user confirms it.

    Raises:
        ExplorerError: There is no result yet, or it could not be written.
    """
    if workspace.last is None:
        raise ExplorerError("There is no result to export yet.", "Ask something first.")
    if not await export(turn, workspace.last, name):
        await say(turn, "Nothing was written.")


async def export(turn: Turn, answer: Answer, name: str) -> bool:
    """Ask, and write the rows of an answer only after a yes; return the answer.

    The question names the file that is written; if another file of that name appears
    meanwhile, the export fails rather than overwrite it.
    """
    path = free_path(export_directory(os.environ), name or answer.question.title or "result")
    shown = f"{path.parent.name}/{path.name}"
    count = "all rows" if answer.result.truncated else size_of(answer.result)
    yes = await turn.confirm(
        "Export as CSV?",
        message=f"Writes {count} to {shown}.",
        confirm_label="Write the file",
        deny_label="Not now",
    )
    if not yes:
        return False
    async with turn.tool("export", {"file": shown}) as tool:
        complete = await _complete(answer)
        size = await asyncio.to_thread(write_csv, complete.result, path)
        tool.result(f"{size:,} bytes")
    link = await _link(turn, path)
    turn.show(
        ui.status_card(
            "success", "Exported", f"{size_of(complete.result)}, {size:,} bytes, in {shown}."
        ),
        *link,
    )
    return True


async def _link(turn: Turn, path: Path) -> list[Component]:
    """Return a link to the file for a reader elsewhere; none if it is too large to keep."""
    try:
        ref = await turn.save_file(path.name, path)
    except ResourceLimit:
        return []
    return [ui.markdown(f"[Download {path.name}]({turn.file_url(ref)})")]


async def _complete(answer: Answer) -> Answer:
    """Return the answer with all its rows, up to the limits of an export."""
    if not answer.result.truncated:
        return answer
    question = answer.question
    result = await question.dataset.ask(question.sql, question.parameters, EXPORT_LIMITS)
    return replace(answer, result=result)


def suggest_next(turn: Turn, chart: ChartPlan | None) -> None:
    """Show suggestions about the last result."""
    kinds = ["line", "bar", "pie"] if chart and len(chart.series) == 1 else ["line", "bar"]
    others = [f"as a {kind} chart" for kind in kinds if chart and kind != chart.kind]
    turn.show(ui.choices([*others, "export", "form", "tables"], title="What next?"))
