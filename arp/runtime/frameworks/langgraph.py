"""`LangGraphRuntime`: any compiled graph of LangGraph as an agent runtime.

```python
app.runtime(LangGraphRuntime(graph))
```

A session is a thread of the graph's checkpointer, with the same id. Tokens of models become text.
Tool calls and results are read from the messages in the graph's state. `interrupt(value)` asks a
question and returns its answer. An interrupt without an answer is asked again when its session is
resumed. If the checkpointer is on disk, another process can resume the session.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import aiosqlite
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START
from langgraph.graph.message import add_messages
from langgraph.pregel import Pregel
from langgraph.types import Command, Interrupt, StateSnapshot

from arp.protocol.json_value import JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import InvalidArgument, NotFound
from arp.runtime.contract.task_runtime import TaskRuntime, TaskTurn, check_loop_of
from arp.runtime.frameworks.graph_stream import OUTPUT, GraphStream, messages_in
from arp.runtime.frameworks.langchain_approvals import decided_by_person
from arp.runtime.frameworks.request_reporter import RequestReporter
from arp.turn.past_messages import PastMessages
from arp.values.cell import as_json

ToInput = Callable[[TaskTurn], Any]
"""Function that makes the input of the graph from a turn."""
_EMPTY_LOG = "PRAGMA wal_checkpoint(TRUNCATE)"
TURN = "arp_turn"
"""Metadata key of a checkpoint. Its value is the key of the turn that made the checkpoint."""


class LangGraphRuntime(TaskRuntime):
    """A runtime that runs a compiled graph.

    Args:
        graph: Result of `compile()` or `create_agent`. A graph without a checkpointer gets one: a
            file in `directory`, or else one in memory.
        to_input: Makes the graph's input from a turn; `None` means a state with `messages`.
        config: Config of every run, such as `{"recursion_limit": 50, "configurable": {…}}`.
        cwd: Directory of the runtime, as in `DrivenRuntime`.
        directory: Directory that stores sessions so that other processes find them; `None` means in
            memory.
    """

    name = "langgraph"
    takes: ClassVar[frozenset[str]] = TaskRuntime.takes | {"fork_session_id"}
    part_types: ClassVar[frozenset[str]] = frozenset({"text", "image", "audio", "file"})
    more_capabilities: ClassVar[tuple[str, ...]] = ("updated_input", "fork_session")

    def __init__(
        self,
        graph: Pregel[Any, Any, Any, Any],
        *,
        to_input: ToInput | None = None,
        config: RunnableConfig | None = None,
        cwd: str | Path = ".",
        directory: str | Path | None = None,
    ) -> None:
        super().__init__(cwd=cwd, directory=directory)
        if not isinstance(graph, Pregel):
            write = "; write graph.compile()" if hasattr(graph, "compile") else ""
            what = type(graph).__name__
            raise InvalidArgument(f"graph: expected a compiled graph, got {what}{write}")
        self._given = graph
        self._graph = graph
        self._database: aiosqlite.Connection | None = None
        """Database of the checkpointer that `graph` created; `None` if it created none."""
        self._opening = asyncio.Lock()
        self._to_input = to_input or _messages_input
        self._config = config or RunnableConfig()

    async def graph(self) -> Pregel[Any, Any, Any, Any]:
        """Return the graph; a graph without a checkpointer gets one first."""
        async with self._opening:
            if not self._graph.checkpointer:
                saver: BaseCheckpointSaver[Any] = InMemorySaver()
                if self.directory is not None:
                    self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                    self._database = aiosqlite.connect(self.directory / "threads.db")
                    saver = AsyncSqliteSaver(self._database)
                    await saver.setup()
                    # Deleted data is overwritten with zeros. Otherwise it would remain in the file.
                    await self._database.execute("PRAGMA secure_delete = ON")
                self._graph = self._graph.copy(update={"checkpointer": saver})
        return self._graph

    async def run_turn(self, turn: TaskTurn) -> None:
        """Run the graph, and run it again with the answers as long as it asks."""
        graph = await self.graph()
        config = self._config_of(turn.session_id, turn.key)
        graph_input: Any = None
        requests = RequestReporter(turn)
        stream = GraphStream(turn, requests.counted)
        running = requests.added_to(config)
        if turn.has_message:
            known = (await self._state(config)).values
            stream.seen.update(message.id for message in messages_in(known))
            graph_input = self._to_input(turn)
        else:  # the turn continues an interrupted one: ask first
            before = await graph.aget_state(config, subgraphs=True)
            stream.resume(list(_all_messages(before)))
            graph_input = await self._ask_interrupts(turn, config)
        stream.holds_output = OUTPUT in graph.channels
        while graph_input is not None:
            modes: list[Any] = ["messages", "updates", "custom"]
            with stream.spoken:
                async for _, mode, data in graph.astream(
                    graph_input, running, stream_mode=modes, subgraphs=True
                ):
                    stream.receive(mode, data)
            stream.end()
            graph_input = await self._ask_interrupts(turn, config)
        await self._add(config, stream.marked())

    async def fork(self, session_id: str, request: ari.CreateSessionRequest) -> None:
        """Copy the whole state that another thread had after a turn, not only its messages.

        Raises:
            NotFound: The thread has no checkpoint of that turn.
        """
        saver: Any = (await self.graph()).checkpointer
        there = self._config_of(request.fork_session_id)
        # Read everything before the first write: a reader of SQLite holds the connection's lock.
        left = [one async for one in saver.alist(there, filter={TURN: request.fork_after}, limit=1)]
        if not left:
            raise NotFound(f"turn {request.fork_after!r:.80} is not in that session")
        here: RunnableConfig = {"configurable": {"thread_id": session_id, "checkpoint_ns": ""}}
        checkpoint = left[0].checkpoint
        await saver.aput(here, checkpoint, left[0].metadata, checkpoint["channel_versions"])

    async def begin_with(self, session_id: str, past: PastMessages) -> None:
        """Store the earlier messages, if the graph's state has `messages`."""
        graph = await self.graph()
        if "messages" in graph.channels:
            messages = {"messages": past.as_langchain()}
            await graph.aupdate_state(self._config_of(session_id), messages, as_node=START)

    async def is_interrupted(self, session_id: str) -> bool:
        """Return whether the graph waits for an answer."""
        return bool((await self._state(self._config_of(session_id))).interrupts)

    async def remembers(self, session_id: str) -> bool:
        """Return whether the thread is in the checkpointer."""
        return (await self._state(self._config_of(session_id))).created_at is not None

    async def cut_off(self, turn: TaskTurn) -> None:
        """Clear the interrupts of the thread, and store the partial answer."""
        config = self._config_of(turn.session_id, turn.key)
        state = await self._state(config)
        if state.interrupts:
            await (await self.graph()).aupdate_state(config, None, as_node=END)
        last = list(messages_in(state.values))[-1:]
        if last and isinstance(last[0], HumanMessage) and turn.said:
            await self._add(config, [AIMessage("".join(turn.said))])

    async def _add(self, config: RunnableConfig, messages: Sequence[BaseMessage]) -> None:
        """Add messages to the thread, if the reducer of its `messages` is `add_messages`."""
        graph = await self.graph()
        if messages and getattr(graph.channels.get("messages"), "operator", None) is add_messages:
            await graph.aupdate_state(config, {"messages": list(messages)}, as_node=START)
            await graph.aupdate_state(config, None, as_node=END)  # else the first node would run

    async def _ask_interrupts(self, turn: TaskTurn, config: RunnableConfig) -> Command[Any] | None:
        """Ask the questions of the open interrupts; return the answers, or `None` without any."""
        waiting = (await self._state(config)).interrupts
        if not waiting:
            return None
        answers = await asyncio.gather(*(_ask(turn, one) for one in waiting))
        return Command(
            resume={one.id: answer for one, answer in zip(waiting, answers, strict=True)}
        )

    async def _state(self, config: RunnableConfig) -> StateSnapshot:
        return await (await self.graph()).aget_state(config)

    def _config_of(self, session_id: str, turn_key: str = "") -> RunnableConfig:
        config = RunnableConfig(**self._config)
        config["configurable"] = {**config.get("configurable", {}), "thread_id": session_id}
        config["metadata"] = {**config.get("metadata", {}), TURN: turn_key}
        return config

    async def _forget(self, session_id: str) -> None:
        await super()._forget(session_id)
        checkpointer: Any = (await self.graph()).checkpointer
        await checkpointer.adelete_thread(session_id)
        if self._database is not None:  # the write-ahead log still has the deleted data
            async with checkpointer.lock, self._database.execute(_EMPTY_LOG) as emptied:
                await emptied.fetchall()

    async def _begin(self) -> None:
        check_loop_of(self._given.checkpointer)
        self._graph, self._opening = self._given, asyncio.Lock()

    async def _end(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            await database.close()

    async def _find(self, session_id: str) -> ari.RuntimeSession | None:
        found = await super()._find(session_id)
        if found is None and session_id:
            state = await self._state(self._config_of(session_id))
            if state.created_at is not None:
                found = ari.RuntimeSession(session_id, ari.SessionState.CLOSED, self.name)
        return found

    async def _runtime_version(self) -> str:
        return version("langgraph")


def _all_messages(state: StateSnapshot) -> Iterator[BaseMessage]:
    """Yield the messages of a thread, and of its interrupted subgraphs."""
    yield from messages_in(state.values)
    for task in state.tasks:
        if isinstance(task.state, StateSnapshot):
            yield from _all_messages(task.state)


async def _ask(turn: TaskTurn, interrupt: Interrupt[Any]) -> Any:
    """Ask the question of an interrupt; return the value that `interrupt()` then returns."""
    schema = getattr(interrupt, "response_schema", None)  # missing in older supported versions
    decided = await decided_by_person(turn, interrupt.id, interrupt.value, schema)
    if decided is not None:
        return decided
    return await turn.answered(interrupt.id, as_json(interrupt.value), schema)


def _messages_input(turn: TaskTurn) -> JsonObject:
    """Return the message of a turn as the input of a graph with `messages` in its state."""
    if not turn.message.parts:
        return {"messages": [HumanMessage(turn.message.content)]}
    return {"messages": [HumanMessage([_block(part) for part in turn.content])]}


def _block(part: ari.ContentPart) -> JsonObject:
    if part.type == "text":
        return {"type": "text", "text": part.text}
    place = {"base64": b64encode(part.data).decode()} if part.data else {"url": part.uri}
    return {"type": part.type, "mime_type": part.mime_type, **place}
