"""Imports uploaded files and shows the progress."""

from __future__ import annotations

import asyncio

from arp import Turn, ui
from csv_import import CsvImport
from dataset import SQLITE_HEADER, Dataset, PrivateDirectory, dataset_of_sqlite, table_name
from errors import DataUnreadable, ExplorerError
from replies import questions_about, show_tables, unread_card
from workspace import Workspace

CHUNK_BYTES = 2**20
"""Bytes of a SQLite file that are stored between two updates of the progress."""

STEPS = ("Receive the file", "Look at the values", "Store the rows", "Describe the tables")


class ImportProgress:
    """The visible steps of one import, and the active one."""

    def __init__(self, turn: Turn, file_name: str) -> None:
        self._turn = turn
        self._active = 0
        steps = [
            ui.step(STEPS[0], "active", detail=""),
            *(ui.step(name, "pending", detail="") for name in STEPS[1:]),
        ]
        self._id = turn.show(ui.progress(steps, title=f"Importing {file_name}"))

    def tell(self, detail: str) -> None:
        """Show the progress of the active step."""
        self._turn.patch(self._id, f"props.steps.{self._active}.detail", detail)

    def reach(self, step: int) -> None:
        """Mark the steps before `step` as done and `step`, if there is one, as active."""
        for index in range(self._active, min(step + 1, len(STEPS))):
            self._mark(index, "done" if index < step else "active")
        self._active = min(step, len(STEPS) - 1)

    def fail(self) -> None:
        """Mark the active step as failed."""
        self._mark(self._active, "failed")

    def _mark(self, index: int, status: str) -> None:
        self._turn.patch(self._id, f"props.steps.{index}.status", status)


async def receive_files(turn: Turn, workspace: Workspace) -> None:
    """Import every file of the turn's input and make the last one the current data set.

    Raises:
        ExplorerError: No file can be read. If only some cannot, cards say which, and why.
    """
    known = {
        tuple(column.name.casefold() for column in table.columns): table.name
        for dataset in workspace.in_order()
        for table in dataset.schema.tables
    }
    unread: list[tuple[str, str]] = []
    for file in turn.files:
        try:
            await _receive(turn, workspace, file.name, await turn.read_file(file))
        except ExplorerError as error:
            if len(unread) == len(turn.files) - 1:
                raise
            unread.append((file.name, error.message))
    if unread:
        turn.show(unread_card(unread))
    await show_tables(turn, workspace)
    suggestions = [
        f"diff {known[columns]} {table.name}"
        for table in workspace.dataset.schema.tables
        if (columns := tuple(column.name.casefold() for column in table.columns)) in known
    ]
    for table in workspace.dataset.schema.tables[:2]:
        suggestions += [f"show {table.name}", *questions_about(table)[:2]]
    turn.show(ui.choices(suggestions[:6] or ["help"], title="What next?"))


async def _receive(turn: Turn, workspace: Workspace, file_name: str, content: bytes) -> None:
    progress = ImportProgress(turn, file_name)
    try:
        async with turn.tool("import", {"file": file_name, "bytes": len(content)}) as tool:
            name = workspace.free_name(table_name(file_name))
            if content.startswith(SQLITE_HEADER):
                dataset = await _store_sqlite(progress, name, content)
            else:
                dataset = await _import_csv(progress, name, content)
            tool.result(f"{len(dataset.schema.tables)} table(s)")
    except ExplorerError:
        progress.fail()
        raise
    progress.reach(len(STEPS))
    workspace.add(dataset)


async def _import_csv(progress: ImportProgress, name: str, content: bytes) -> Dataset:
    """Import step by step; a cancel takes effect between two steps and leaves nothing."""
    progress.tell(f"{len(content):,} bytes")
    progress.reach(1)
    private = PrivateDirectory()
    path = private.path / "imported.sqlite"
    steps = await asyncio.to_thread(CsvImport, path, name, content)
    with steps:
        while not steps.done:
            await asyncio.to_thread(steps.step)
            if steps.storing and not steps.rows_stored:
                progress.reach(2)
            done = steps.rows_stored if steps.storing else steps.rows_seen
            progress.tell(
                f"{done:,} of {steps.rows_seen:,} rows" if steps.storing else f"{done:,} rows"
            )
        if steps.uneven_rows:
            progress.tell(f"{steps.rows_stored:,} rows, {steps.uneven_rows:,} of uneven length")
    progress.reach(3)
    return await asyncio.to_thread(Dataset, name, path, private)


async def _store_sqlite(progress: ImportProgress, name: str, content: bytes) -> Dataset:
    """Store the file in a private directory, a chunk at a time."""
    private = PrivateDirectory()
    path = private.path / "uploaded.sqlite"
    progress.reach(2)
    with path.open("wb") as file:
        for start in range(0, len(content), CHUNK_BYTES):
            await asyncio.to_thread(file.write, content[start : start + CHUNK_BYTES])
            progress.tell(f"{min(start + CHUNK_BYTES, len(content)):,} of {len(content):,} bytes")
    progress.reach(3)
    try:
        return await asyncio.to_thread(dataset_of_sqlite, name, path, private)
    except ExplorerError as error:
        raise DataUnreadable(f"The database is damaged: {error.message}", error.hint) from error
