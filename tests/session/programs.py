"""Random programs of a session, run as the hub runs them, with renderers of many kinds that watch.

A program is a list of steps; a step is the name of an action and a number from which all its
choices come, so that a failing program is as short as it can be and says what happened.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from hypothesis import strategies as st

from arp.ledger.fact import Fact, decode
from arp.protocol.catalog import VERSIONS
from arp.protocol.codec import Encoding
from arp.protocol.components import Component
from arp.protocol.connection.renderer_connection import RendererConnection
from arp.protocol.connection.screen import Screen
from arp.protocol.errors import ArpError
from arp.protocol.json_value import Json
from arp.protocol.limits import Limits, RendererLimits
from arp.protocol.messages import (
    AgentMessage,
    Command,
    CommandChoice,
    ErrorMessage,
    Input,
    RendererCapabilities,
    RendererHello,
    SessionReady,
    SurfaceInfo,
)
from arp.protocol.tree import Tree
from arp.session.asking import ask_question
from arp.session.effects import Effect, StopTurn
from arp.session.input.receive import NewTurnOptions, receive, submit
from arp.session.recording.recorded import Cursor, Recorded, Text
from arp.session.recovery import recover
from arp.session.session import Head, Session
from arp.session.session_values import set_commands, update_shared_state, update_state
from arp.session.surfaces import close_surface, describe_surface, open_surface
from arp.session.turn_end import end_turn
from arp.surface.change import Change
from arp.view.frames import FrameGroup, addressed, text_frames
from arp.view.frames import encoded as as_frames
from arp.view.profile import DRAFT, Profile, profile_of, shows, typed_answer
from arp.view.snapshot import catch_up, snapshot
from arp.view.view import View
from tests.session.conversation import watched
from tests.support.restoring import restore
from tests.surface.random_changes import WORDS, change, root_changes

AT = "2026-11-21T08:00:00.000000Z"

FEATURES = ["streaming", "input", "resume", "patch-append", "thinking", "tool-detail"]

ALL = dict(VERSIONS) | {"x-acme-dial": 1}

BASIC = ["text", "table", "form", "confirm", "choices", "status-card", "group"]


def profile(
    components: dict[str, int] | list[str],
    features: Sequence[str] = FEATURES,
    rows: int | None = None,
    message_bytes: int | None = None,
) -> Profile:
    limits = RendererLimits(max_table_rows=rows, max_message_bytes=message_bytes)
    return profile_of(RendererCapabilities(components, list(features), limits))


WINDOWS = [*FEATURES, "multi-surface", "overlays"]

PROFILES: dict[str, Profile] = {
    "full": profile(ALL, WINDOWS),
    "windows, few components": profile(BASIC, WINDOWS),
    "no popups": profile(ALL, [*FEATURES, "multi-surface"]),
    "core": profile(dict(VERSIONS)),
    "text only": profile(["text"]),
    "basic": profile(BASIC),
    "few rows": profile(ALL, rows=2),
    "no append": profile(ALL, ["streaming"]),
    "tabs without group": profile(["text", "tabs", "table"]),
    "small messages": profile(ALL, message_bytes=800),
    "small and few": profile(BASIC, ["streaming"], rows=2, message_bytes=850),
    "draft": DRAFT,
}

ENCODINGS: dict[str, Encoding] = {"core": "msgpack", "basic": "cbor", "small and few": "cbor"}


ENDS_STREAM = ("waiting", "completed", "failed", "cancelled")
"""Statuses with a final commit, for renderers of the draft; meanwhile they keep an earlier one."""


class Watcher:
    """A renderer of one profile that is attached to the session, as the hub treats it."""

    def __init__(self, name: str, wanted: Profile) -> None:
        self.name = name
        self.profile = wanted
        self.encoding: Encoding = ENCODINGS.get(name, "json")
        self.connection = connection(self.encoding)
        self.view: View | None = None
        self.part: str | None = None
        self.behind: Cursor | None = None
        self.frames: list[bytes] = []
        """Everything that was sent since the last snapshot."""
        self.snapshots = 0

    @property
    def group(self) -> FrameGroup:
        return FrameGroup(self.profile, self.encoding, self.part)

    def attach(self, session: Session) -> None:
        """From now on it can be told what the session commits."""
        self.view = watched(session, self.profile)

    def join(self, session: Session) -> None:
        """Joins a session; a renderer that knows only the draft is not told what was before."""
        name = session.name
        ready = SessionReady(
            session_id=name.session_id, epoch=name.epoch, seq=name.seq, resume="new"
        )
        self.feed(encoded([ready], self.group, None))

    def snapshot(self, session: Session, cursor: Cursor) -> None:
        self.snapshots += 1
        self.part, self.behind = None, None
        messages = snapshot(session.screen, session.name, self.profile)
        self.feed(encoded(messages, self.group, None))
        self.part = cursor.part

    def deliver(self, session: Session, recorded: Sequence[Recorded], cursor: Cursor) -> None:
        """What `hub.delivery` does with what has become durable."""
        if self.behind is not None:
            return
        frames: list[bytes] = []
        assert self.view is not None
        for one in recorded:
            if isinstance(one, Text):
                frames += text_frames(one, self.group)
                continue
            made = self.view.frames(one, self.group)
            if made is None:
                self.snapshot(session, cursor)
                return
            frames += made
        self.feed(frames)
        if self.part is not None and self.part != cursor.part:
            self.part = None

    def catch_up(self, session: Session, cursor: Cursor) -> None:
        """What `hub.delivery` does with a renderer that was behind."""
        before, self.behind = self.behind, None
        if before is None or before.seq == cursor.seq:
            return
        messages = catch_up(session.screen, session.name, self.profile, before)
        if messages is None:
            self.snapshot(session, cursor)
            return
        self.feed(encoded(messages, self.group, before.part))
        self.part = self.part if cursor.part == before.part else cursor.part

    def feed(self, frames: Sequence[bytes]) -> None:
        most = self.profile.limits.max_message_bytes
        for frame in frames:
            assert most is None or len(frame) <= most, f"{self.name}: {len(frame)} bytes"
            self.frames.append(frame)
            for message in self.connection.receive(frame):
                assert not is_local_error(message), f"{self.name}: {message}"

    def state(self) -> Json:
        shown = state(self.connection.screen, self.profile)
        for turn in shown["turns"].values():
            if self.profile.ends_at_questions and turn["status"] not in ENDS_STREAM:
                turn["final"] = None
        return shown


def is_local_error(message: AgentMessage) -> bool:
    """Whether the connection itself says that something did not fit."""
    return isinstance(message, ErrorMessage) and message.session_id is None


def connection(encoding: Encoding) -> RendererConnection:
    return RendererConnection(RendererHello(), encoding)


def encoded(messages: Sequence[AgentMessage], group: FrameGroup, part: str | None) -> list[bytes]:
    return [
        frame
        for before in messages
        for message in addressed(before, group, part)
        for frame in as_frames(message, group)
    ]


def state(screen: Screen, wanted: Profile = DRAFT) -> Json:
    """All that shows, more exactly than `canonical`: order of turns, places in the queue.

    Who shows the children of a layout in its place may have a tool stand between them, so that for
    it the order of what is no output is left out.
    """
    shown = screen.canonical()
    for turn in shown["turns"].values():
        if not shows(wanted, "group", 1):
            del turn["story"]
    order = list(shown["turns"])
    positions = {turn.id: turn.position for turn in screen.turns.values()}
    return copy.deepcopy({**shown, "order": order, "positions": positions})


def inside(session: Session) -> Json:
    """All that a refused action must leave as it was; what was said before counts as said."""
    assert session.cursor.seq == session.sequence
    trees = {
        name: (
            {
                node.id: (node.born, node.seq, node.turn, node.children)
                for node in tree.nodes.values()
            },
            tree.outputs,
            tree.removed,
            tree.restructured,
        )
        for name, tree in session.screen.surfaces.items()
    }
    rest = (session.sequence, session.running, session.queue, session.questions, session.input_log)
    return copy.deepcopy((state(session.screen), trees, rest))


def fresh(session: Session, wanted: Profile) -> Json:
    """What a renderer of this profile sees that joins only now."""
    watcher = Watcher("fresh", wanted)
    watcher.snapshot(session, session.cursor)
    return watcher.state()


Action = Callable[["Run", Random], None]


class Run:
    """One session, everybody who watches it, and what the ledger holds."""

    def __init__(self, watching: Sequence[str] = tuple(PROFILES)) -> None:
        self.head = Head("s", "epoch")
        self.limits = Limits()
        self.session = Session(self.head, self.limits)
        self.session.record("session.created", {"epoch": "epoch", "workflow": ""})
        self.ledger: list[bytes] = []
        self.watchers = [Watcher(name, PROFILES[name]) for name in watching]
        self.cursor = Cursor()
        self.refused = 0
        self._inputs = 0
        self._calls: list[tuple[str, str]] = []
        for watcher in self.watchers:
            watcher.attach(self.session)
        self.drain()
        for watcher in self.watchers:
            watcher.join(self.session)

    def watcher(self, name: str) -> Watcher:
        return next(watcher for watcher in self.watchers if watcher.name == name)

    def play(self, steps: Sequence[tuple[str, int]]) -> None:
        for name, number in steps:
            ACTIONS[name](self, Random(number))

    @property
    def facts(self) -> list[Fact]:
        """What is durable, read anew."""
        return [decode(fact) for fact in self.ledger]

    # -- as the hub does it ------------------------------------------------------------------------

    def drain(self) -> list[Any]:
        """Writes what was recorded, and delivers it."""
        drained = self.session.drain(AT)
        self.ledger += drained.facts
        self.cursor = drained.cursor
        for watcher in self.watchers:
            watcher.deliver(self.session, drained.recorded, drained.cursor)
        return list(drained.recorded)

    def carry_out(self, effects: Sequence[Effect]) -> None:
        """Starting a turn needs nothing here; a cancelled one ends at once."""
        for effect in effects:
            if isinstance(effect, StopTurn):
                self.carry_out(end_turn(self.session, effect.turn_id, "cancelled"))

    def take(self, message: Input, wanted: Profile = DRAFT) -> None:
        before = inside(self.session)
        try:
            effects = receive(self.session, message, partial(typed_answer, wanted))
        except ArpError:
            self.refused += 1
            assert inside(self.session) == before, "a refused input changes nothing"
        else:
            self.carry_out(effects)

    def commit(self, turn: str | None, surface: str, changes: Sequence[Change]) -> None:
        before = inside(self.session)
        try:
            self.session.commit(turn, surface, changes)
        except ArpError:
            self.refused += 1
            assert inside(self.session) == before, "a refused commit changes nothing"

    def input_id(self, chance: Random) -> str | None:
        self._inputs += 1
        return chance.choice([None, f"i{self._inputs}", f"i{chance.randint(1, self._inputs)}"])

    def check(self) -> None:
        """Everybody who is current sees what one sees that joins now."""
        self.drain()
        full = state(self.session.screen)
        for watcher in self.watchers:
            if watcher.behind is None:
                joined = fresh(self.session, watcher.profile)
                assert watcher.state() == joined, watcher.name
                if watcher.name == "full":
                    assert joined == full


LONG = "".join(f"{number} wörds, " for number in range(100))
"""More than some renderers take in one message."""


# -- actions ---------------------------------------------------------------------------------------


def say(run: Run, chance: Random) -> None:
    if run.session.running:
        run.session.say(run.session.running, chance.choice(["one ", "two ", "\n\n", LONG]))


def think(run: Run, chance: Random) -> None:
    if run.session.running:
        run.session.say(run.session.running, chance.choice(["hm ", "so ", LONG]), "reasoning.delta")


def ask_user(run: Run, chance: Random) -> None:
    text = chance.choice([*WORDS, LONG, "yes", "no", "one", "n: Ada"])
    message = Input(input_type="text", data={"text": text}, id=run.input_id(chance))
    run.take(message, chance.choice(list(PROFILES.values())))


def begin_thread(run: Run, chance: Random) -> None:
    """A further thread, a few times; and a turn in one that there is."""
    threads = run.session.threads
    if len(threads.begun) < 3:
        run.session.begin_thread(threads.new_name(), chance.choice([None, "Another"]))
    name = chance.choice([*threads.begun])
    message = Input(input_type="text", data={"text": chance.choice(WORDS)})
    run.carry_out(submit(run.session, message, NewTurnOptions(thread=name)))


def show(run: Run, chance: Random) -> None:
    surface = chance.choice(["main", "main", "main", "side"])
    tree = run.session.tree(surface)
    if run.session.running and tree is not None:
        run.commit(run.session.running, surface, [change(chance, tree)])
    elif run.session.running:
        run.commit(
            run.session.running, surface, [change(chance, run.session.screen.surfaces["main"])]
        )


def frame(run: Run, chance: Random) -> None:
    tree = run.session.screen.surfaces["main"]
    if run.session.running:
        changes = [change(chance, tree) for _ in range(chance.randint(2, 4))]
        run.commit(run.session.running, "main", changes)


def arrange(run: Run, chance: Random) -> None:
    """The agent moves, replaces, removes and adds root components in one commit."""
    turn, surface = run.session.running, chance.choice(["main", "main", "side"])
    tree = run.session.tree(surface)
    if turn is not None and tree is not None:
        run.commit(turn, surface, [root_changes(chance, tree, turn if surface == "main" else "")])


def keep(run: Run, chance: Random) -> None:
    """The agent keeps something, or something that it cannot keep."""
    turn = run.session.running
    word = {"word": chance.choice(WORDS)}
    states: list[dict[str, Any]] = [{}, {"n": 1}, {"n": True}, word, {"large": LONG * 61}]
    kept = chance.choice(states)
    if turn is None:
        return
    before = inside(run.session), copy.deepcopy(run.session.settings.state)
    try:
        update_state(run.session, turn, kept)
    except ArpError:
        run.refused += 1
        assert (inside(run.session), run.session.settings.state) == before


def offer(run: Run, chance: Random) -> None:
    """The agent changes the commands of the session."""
    turn = run.session.running
    if turn is None:
        return
    choices = CommandChoice("small", current=True), CommandChoice("large", chance.choice(WORDS))
    described = chance.choice([*WORDS, "long " * 200])  # too long for some renderers
    known = Command("compact"), Command("model", described, choices=choices)
    set_commands(run.session, turn, known[: chance.randrange(3)])


def transient(run: Run) -> list[str]:
    """The popups and overlays that are there."""
    infos = run.session.screen.infos
    return [name for name, entry in infos.items() if entry.info.is_transient]


def window(run: Run, chance: Random) -> None:
    """A toplevel is made, gets a title, or another one."""
    turn = run.session.running
    if turn is None:
        return
    name, title = chance.choice(["side", "left"]), chance.choice(WORDS)
    try:
        if name in run.session.screen.surfaces:
            describe_surface(run.session, turn, name, title=title)
        else:
            open_surface(run.session, turn, name, SurfaceInfo(title=title))
    except ArpError:
        run.refused += 1


def popup(run: Run, chance: Random) -> None:
    """A popup or an overlay over any surface, with components that it may refuse."""
    turn = run.session.running
    if turn is None:
        return
    parent = chance.choice([*run.session.screen.surfaces])
    role: Any = chance.choice(["popup", "overlay"])
    info = SurfaceInfo(role=role, parent=parent, title=chance.choice(WORDS))
    name = f"{turn}-{role}-{run.session.sequence}"
    made = [change(chance, Tree()) for _ in range(chance.randint(0, 2))]
    before = inside(run.session)
    try:
        open_surface(run.session, turn, name, info, made)
    except ArpError:
        run.refused += 1
        assert inside(run.session) == before, "a refused popup changes nothing"


def change_popup(run: Run, chance: Random) -> None:
    names = transient(run)
    if run.session.running and names:
        name = chance.choice(names)
        run.commit(run.session.running, name, [change(chance, run.session.screen.surfaces[name])])


def close(run: Run, chance: Random) -> None:
    """A surface is closed by its agent, by a user, or since its time is over."""
    names = [name for name in run.session.screen.surfaces if name != "main"]
    if names and chance.random() < 0.5:
        reason: Any = chance.choice(["agent", "timeout", "transferred"])
        run.carry_out(close_surface(run.session, chance.choice(names), reason))
    else:
        name = chance.choice([*names, "main", "nothing"])
        data = {"action": "arp.close"}
        message = Input(input_type="action", data=data, surface=name, id=run.input_id(chance))
        run.take(message)


def share(run: Run, chance: Random) -> None:
    if run.session.running:
        states: list[dict[str, Any]] = [{}, {"n": 1}, {"word": chance.choice(WORDS)}]
        update_shared_state(run.session, run.session.running, chance.choice(states))


def tool(run: Run, chance: Random) -> None:
    turn = run.session.running
    if turn is None:
        return
    if run._calls and run._calls[-1][0] == turn and chance.random() < 0.6:
        _, call = run._calls.pop()
        ids = {"step_id": call, "tool_call_id": call}
        if chance.random() < 0.5:
            run.session.in_turn("tool.result", turn, {"tool": "query"}, **ids)
        else:
            run.session.in_turn("tool.failed", turn, {"tool": "query", "error": "broke"}, **ids)
        return
    call = f"{turn}.{run.session.sequence}"
    ids = {"step_id": call, "tool_call_id": call}
    run.session.in_turn("tool.started", turn, {"tool": "query"}, **ids)
    run.session.in_turn("tool.args", turn, {"tool": "query", "args": "{}"}, **ids)
    run._calls.append((turn, call))


QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("confirm", {"title": "Sure?"}),
    ("choices", {"options": ["one", "two"]}),
    ("form", {"fields": [{"name": "n", "label": "Name"}]}),
    ("text-input", {"label": "Say"}),
]

ANSWERS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "confirm": [("action", {"action": "confirm"}), ("action", {"action": "deny"})],
    "choices": [("selection", {"selected": ["one"]}), ("selection", {"selected": ["none"]})],
    "form": [("form_submit", {"fields": {"n": "Ada"}}), ("form_submit", {"fields": {"m": 1}})],
    "text-input": [("text", {"text": "said"})],
    "tabs": [("action", {"action": "tab_change", "payload": {"tab": 0}})],
}


def ask(run: Run, chance: Random) -> None:
    turn = run.session.running
    if turn is None:
        return
    kind, props = chance.choice(QUESTIONS)
    name = chance.choice(["q", f"q{run.session.sequence}", "a", "b"])
    try:
        surface = chance.choice(["main", "side", *transient(run)])
        ask_question(run.session, turn, Component(name, kind, dict(props)), surface)
    except ArpError:
        run.refused += 1


def answer(run: Run, chance: Random) -> None:
    """Answers something that can be answered, asked or not, now and then wrongly."""
    found = [
        (node.id, node.type, surface)
        for surface, tree in run.session.screen.surfaces.items()
        for node in tree.nodes.values()
        if node.type in ANSWERS
    ]
    if not found:
        return
    name, kind, surface = chance.choice(found)
    input_type, data = chance.choice(ANSWERS[kind])
    source = name if chance.random() < 0.8 else None
    message = Input(
        input_type=input_type,  # type: ignore[arg-type]  # one of the words
        data=data,
        source_component=source,
        surface=surface,
        id=run.input_id(chance),
    )
    run.take(message, chance.choice(list(PROFILES.values())))


def cancel(run: Run, chance: Random) -> None:
    turns = [None, *run.session.queue, "nobody"]
    payload = {"turn_id": chance.choice(turns)}
    data = {"action": "arp.cancel", "payload": payload}
    run.take(Input(input_type="action", data=data, id=run.input_id(chance)))


def finish(run: Run, chance: Random) -> None:
    turn = run.session.running
    if turn is None:
        return
    if chance.random() < 0.7:
        run.carry_out(end_turn(run.session, turn, "completed"))
    else:
        run.carry_out(end_turn(run.session, turn, "failed", ZeroDivisionError("secret")))


def drain(run: Run, chance: Random) -> None:
    run.drain()


def fall_behind(run: Run, chance: Random) -> None:
    run.drain()
    watcher = chance.choice(run.watchers)
    # Who knows only the draft can take no snapshot, so an order that changed is lost on it.
    if watcher.behind is None and watcher.profile.said_hello:
        watcher.behind = run.cursor


def return_(run: Run, chance: Random) -> None:
    run.drain()
    for watcher in run.watchers:
        watcher.catch_up(run.session, run.cursor)


def rejoin(run: Run, chance: Random) -> None:
    """A renderer comes anew and gets a snapshot."""
    run.drain()
    watcher = chance.choice(run.watchers)
    watcher.snapshot(run.session, run.cursor)


def crash(run: Run, chance: Random) -> None:
    """The process ends, what is not durable is lost, and another one begins."""
    run.session = restore(run.head, run.facts, run.limits)
    for watcher in run.watchers:
        watcher.attach(run.session)
        watcher.part = None
    run.carry_out(recover(run.session))


ACTIONS: dict[str, Action] = {
    "say": say,
    "think": think,
    "user": ask_user,
    "thread": begin_thread,
    "show": show,
    "frame": frame,
    "arrange": arrange,
    "window": window,
    "popup": popup,
    "change popup": change_popup,
    "close": close,
    "share": share,
    "tool": tool,
    "keep": keep,
    "offer": offer,
    "ask": ask,
    "answer": answer,
    "cancel": cancel,
    "finish": finish,
    "drain": drain,
    "fall behind": fall_behind,
    "return": return_,
    "rejoin": rejoin,
    "crash": crash,
}

WEIGHTED = (
    *("say",) * 4,
    *("show",) * 8,
    *("frame",) * 3,
    *("arrange",) * 3,
    *("user",) * 3,
    *("drain",) * 3,
    *("answer",) * 2,
    *("ask",) * 2,
    *("finish",) * 2,
    *("popup",) * 2,
    *("change popup",) * 3,
    *("close",) * 2,
    *("tool",) * 2,
    "window",
    "share",
    *("keep",) * 2,
    *("fall behind",) * 2,
    *("return",) * 2,
    "think",
    "offer",
    "thread",
    "cancel",
    "rejoin",
    "crash",
)

steps = st.lists(
    st.tuples(st.sampled_from(WEIGHTED), st.integers(0, 2**20)), min_size=1, max_size=40
)
"""Programs; every one begins with something that the user says."""

arrangements = st.lists(
    st.tuples(
        st.sampled_from((*("arrange",) * 6, "tool", "tool", "say", "drain", "finish", "user")),
        st.integers(0, 2**20),
    ),
    min_size=1,
    max_size=16,
)
"""Programs that mostly move, replace and remove root components."""

BEGIN = [("user", 1), ("say", 1)]
