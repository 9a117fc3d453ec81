"""A runtime on the screens: what happens in it is shown, asked and recorded as of any agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect as websocket

from arp import App, ToolFailed, Turn, connect
from arp.client.client import ArpClient
from arp.ledger.fact import decode
from arp.protocol.components import Component
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import Unavailable
from arp.runtime.remote.http_runtime import HttpRuntime
from arp.runtime.turns.agent_sessions import RuntimeLimits
from arp.runtime.turns.linked_session import MAX_KNOWN_TURNS, STATE_KEY
from arp.runtime.turns.session_commands import RuntimeOffers
from arp.store.sqlite import SqliteStore
from arp.testing import Fails, FakeRuntime, Says, Step, Tells, Thinks, Uses, Waits
from tests.runtime.test_http import served
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes

COMMAND = ari.PermissionKind.COMMAND
RULE = ari.PermissionRule("git", "git commands")


@asynccontextmanager
async def shown(
    script: dict[str, list[Step]], tmp_path: Path, **options: Any
) -> AsyncIterator[tuple[ArpClient, FakeRuntime, Serving]]:
    """Serve a fake runtime, and connect a renderer to it."""
    fake = FakeRuntime(script, cwd=tmp_path, directory=tmp_path / "runtime")
    app = App(ledger=f"sqlite:{tmp_path}/ledger.db")
    app.runtime(fake, **options)
    with serving(app) as server:
        async with asyncio.timeout(30), connect(server.http, session_id="s") as client:
            yield client, fake, server


async def until(client: ArpClient, ready: Callable[[], Any]) -> Any:
    """Return what `ready` returns, as soon as it is something."""
    events = client.events()
    while not (found := ready()):
        await anext(events)
    return found


def asked(client: ArpClient) -> dict[str, Any]:
    """Return the permissions that are asked now, by the ids of their components."""
    return {
        name: one
        for turn in client.screen.turns.values()
        for name, one in turn.permissions.items()
        if any(
            shown.id == name and shown.props["state"] == "open"
            for shown in client.screen.output(turn.id)
        )
    }


def types(client: ArpClient, turn_id: str) -> list[str]:
    return [component.type for component in client.screen.output(turn_id)]


async def test_text_thoughts_tools_and_what_they_show(tmp_path: Path) -> None:
    plan = {"todos": [{"text": "Look", "status": "done"}, {"text": "Fix", "status": "active"}]}
    steps: list[Step] = [
        Thinks("Let me see."),
        Tells(ari.Lifecycle.PLAN, details=plan),
        Uses("shell", {"command": "ls"}, "README.md\n"),
        Says("There is a README."),
    ]
    async with shown({"look": steps}, tmp_path) as (client, fake, _):
        turn = await client.ask("look")
        assert turn.status == "completed"
        assert client.screen.text(turn.id) == "There is a README."
        assert types(client, turn.id)[:2] == ["progress", "code-block"]
        (tool,) = turn.tools
        assert (tool.tool, tool.ok, tool.result) == ("shell", True, "README.md\n")
        assert fake.calls("send_message") == 1


async def test_an_agent_hands_turns_to_a_runtime_that_users_cannot_choose(tmp_path: Path) -> None:
    """The runtime gets what was said in the turns that it did not have."""
    fake = FakeRuntime({"fail": [Fails(Unavailable("no model"))]}, cwd=tmp_path)
    app = App(ledger="memory:")
    helper = app.runtime(fake, listed=False)

    @app.agent
    async def front(turn: Turn) -> None:
        if turn.text.startswith("mine"):
            await turn.say("I know that myself.")
            return
        try:
            await helper(turn)
        except ToolFailed as failed:
            await turn.say(f"It failed: {failed.message}")

    assert [one.name for one in app.workflows()] == ["front"]
    with serving(app) as server:
        async with asyncio.timeout(30), connect(server.http, session_id="s") as client:
            for text in ("hello", "mine 1", "mine 2", "go", "again", "fail"):
                turn = await client.ask(text)
            assert turn.status == "completed"
            assert client.screen.text(turn.id) == "It failed: fake: no model"
    sent = [one for name, one in fake.called if name == "send_message"]
    texts = [one.message.content for one in sent if isinstance(one, ari.SendMessageRequest)]
    assert texts == [
        "hello",
        (
            "Since your last answer, others have answered the user:\n\nuser: mine 1\n\n"
            "assistant: I know that myself.\n\nuser: mine 2\n\nassistant: I know that myself.\n\n"
            "Now the user says:\n\ngo"
        ),
        "again",
        "fail",
    ]


async def test_what_runs_is_what_was_approved(tmp_path: Path) -> None:
    steps: list[Step] = [Uses("shell", {"command": "rm a"}, "removed", asks=True, rules=(RULE,))]
    async with shown({"go": steps}, tmp_path) as (client, fake, _):
        for payload in ({"updated_input": {"command": "rm b"}}, {"scope": "session"}):
            await client.send_text("go")
            (component,) = await until(client, lambda: asked(client))
            permission = asked(client)[component]
            assert permission.session_rule == "git commands"
            await client.send_action(
                "confirm", {**payload, "digest": permission.digest}, source=component
            )
            await client.turn_done()
        assert fake.ran == [("shell", {"command": "rm b"}), ("shell", {"command": "rm a"})]
        answers = [one for name, one in fake.called if name == "respond_permission"]
        assert isinstance(answers[-1], ari.RespondPermissionRequest)
        assert answers[-1].response == ari.PermissionResponse("allow", rule_id="git")


async def test_of_several_rules_the_person_chooses_one(tmp_path: Path) -> None:
    rules = (RULE, ari.PermissionRule("all", "every command", "always"))
    steps: list[Step] = [Uses("shell", {"command": "rm a"}, "removed", asks=True, rules=rules)]
    async with shown({"go": steps}, tmp_path) as (client, fake, _):
        for taken in ("every command", "Nothing more than this call"):
            await client.send_text("go")
            (component,) = await until(client, lambda: asked(client))
            permission = asked(client)[component]
            assert permission.session_rule == (
                "One of these, which you choose next: git commands; every command"
            )
            await client.send_permission(permission, True, scope="session")
            (choices,) = await until(client, lambda: open_choices(client))
            labels = ["git commands", "every command", "Nothing more than this call"]
            assert choices.props["options"] == labels
            assert len(fake.ran) == (taken != "every command"), "it runs when the rule is chosen"
            await client.send_selection([taken], source=choices.id)
            await client.turn_done()
        answers = [one for name, one in fake.called if name == "respond_permission"]
        assert [
            one.response.rule_id for one in answers if isinstance(one, ari.RespondPermissionRequest)
        ] == ["all", ""]


def open_choices(client: ArpClient) -> list[Component]:
    return [
        one
        for turn in client.screen.turns
        for one in client.screen.output(turn)
        if one.type == "choices" and one.props["state"] == "open"
    ]


async def facts_of(tmp_path: Path, fact_type: str) -> list[dict[str, Any]]:
    """Return the payloads of the facts of a type."""
    store = SqliteStore(tmp_path / "ledger.db", read_only=True)
    await store.open()
    try:
        found = [decode(body) for _, body in await store.read("s", 0, 10_000)]
    finally:
        await store.aclose()
    return [dict(fact.payload) for fact in found if fact.type == fact_type]


async def fact_of(tmp_path: Path, fact_type: str) -> dict[str, Any]:
    """Wait for the first fact of a type, and return its payload."""
    for _ in range(3_000):
        if found := await facts_of(tmp_path, fact_type):
            return found[0]
        await asyncio.sleep(0.01)
    raise AssertionError(f"it did not come to a fact of the type {fact_type}")


async def test_approval_is_bound_to_the_files_that_the_input_names(tmp_path: Path) -> None:
    """A script that was swapped while the question was open does not run, nor does its rule."""
    script = tmp_path / "run.sh"
    script.write_text("echo A\n")
    shown_digest = sha256(b"echo A\n").hexdigest()
    steps: list[Step] = [Uses("shell", {"command": "sh run.sh"}, asks=True, rules=(RULE,))]
    async with shown({"go": steps}, tmp_path) as (client, fake, _):
        await client.send_text("go")
        (component,) = await until(client, lambda: asked(client))
        script.write_text("echo B\n")
        await client.send_action("confirm", {"scope": "session"}, source=component)
        turn = await client.turn_done()
        why = "run.sh changed after it was shown, so it was not run; ask again"
        assert [(tool.ok, tool.error) for tool in turn.tools] == [(False, why)]
        assert fake.ran == []
        (answer,) = (one for name, one in fake.called if name == "respond_permission")
        assert isinstance(answer, ari.RespondPermissionRequest)
        assert answer.response == ari.PermissionResponse("deny", message=why)
        (requested,) = await facts_of(tmp_path, "permission.requested")
        file = {"path": str(script), "bytes": 7, "sha256": shown_digest}
        assert requested["files"] == [file]
        (resolved,) = await facts_of(tmp_path, "permission.resolved")
        assert resolved["decision"] == "deny"
        assert resolved["deniedBy"] == {"kind": "hostPolicy", "name": "second-look"}
        assert resolved["reason"] == why
        assert resolved["files"] == [{**file, "sha256": sha256(b"echo B\n").hexdigest()}]
        assert resolved.get("scope") is None


async def test_file_that_changes_while_the_rule_is_chosen_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("echo A\n")
    rules = (RULE, ari.PermissionRule("all", "every command"))
    steps: list[Step] = [Uses("shell", {"command": "sh run.sh"}, asks=True, rules=rules)]
    async with shown({"go": steps}, tmp_path) as (client, fake, _):
        await client.send_text("go")
        (component,) = await until(client, lambda: asked(client))
        await client.send_action("confirm", {"scope": "session"}, source=component)
        (choices,) = await until(client, lambda: open_choices(client))
        (tmp_path / "run.sh").write_text("echo B\n")
        await client.send_selection(["every command"], source=choices.id)
        turn = await client.turn_done()
        assert str(turn.tools[0].error).startswith("run.sh changed after it was shown")
        assert fake.ran == []


async def test_files_that_are_as_they_were_shown_change_nothing(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("echo A\n")
    steps: list[Step] = [Uses("shell", {"command": "sh run.sh"}, "A", asks=True)]
    async with shown({"go": steps}, tmp_path) as (client, _, _):
        await client.send_text("go")
        (component,) = await until(client, lambda: asked(client))
        await client.send_action("confirm", source=component)
        turn = await client.turn_done()
        assert turn.tools[0].ok
        (resolved,) = await facts_of(tmp_path, "permission.resolved")
        assert (resolved["decision"], resolved.get("files")) == ("allow", None)


async def test_edited_input_has_its_own_files(tmp_path: Path) -> None:
    """One that both name must be as it was shown; the others are recorded as they are then."""
    (tmp_path / "run.sh").write_text("echo A\n")
    (tmp_path / "other.sh").write_text("echo C\n")
    steps: list[Step] = [Uses("shell", {"command": "sh run.sh"}, asks=True)]
    async with shown({"go": steps}, tmp_path) as (client, fake, _):
        for command in ("sh other.sh", "sh -x run.sh"):
            await client.send_text("go")
            (component,) = await until(client, lambda: asked(client))
            (tmp_path / "run.sh").write_text("echo B\n")
            edited = {"updated_input": {"command": command}}
            await client.send_action("confirm", edited, source=component)
            await client.turn_done()
            (tmp_path / "run.sh").write_text("echo A\n")
        assert fake.ran == [("shell", {"command": "sh other.sh"})]
        allowed, denied = await facts_of(tmp_path, "permission.resolved")
        digest = sha256(b"echo C\n").hexdigest()
        file = {"path": str(tmp_path / "other.sh"), "bytes": 7, "sha256": digest}
        assert (allowed["edited"], allowed["files"]) == (True, [file])
        assert denied["reason"].startswith("run.sh changed after it was shown")


async def test_input_that_changes_in_the_runtime_is_not_approved(tmp_path: Path) -> None:
    """A runtime in this process may change the object that it has asked about."""
    tool_input = {"command": "ls"}
    steps: list[Step] = [Uses("shell", tool_input, asks=True)]
    async with shown({"go": steps}, tmp_path) as (client, fake, _):
        await client.send_text("go")
        (component,) = await until(client, lambda: asked(client))
        tool_input["command"] = "rm -r ."
        await client.send_action("confirm", source=component)
        turn = await client.turn_done()
        assert fake.ran == []
        assert str(turn.tools[0].error).startswith("the input changed after it was shown")


async def test_files_of_another_machine_are_not_looked_at(tmp_path: Path) -> None:
    """The same path is another file there."""
    (tmp_path / "run.sh").write_text("echo A\n")
    steps: list[Step] = [Uses("shell", {"command": "sh run.sh"}, asks=True)]
    behind = FakeRuntime({"go": steps}, cwd=tmp_path)
    async with served(behind) as address:
        app = App(ledger=f"sqlite:{tmp_path}/ledger.db")
        app.runtime(HttpRuntime(address))
        with serving(app) as server:
            async with asyncio.timeout(30), connect(server.http, session_id="s") as client:
                await client.send_text("go")
                (component,) = await until(client, lambda: asked(client))
                (tmp_path / "run.sh").write_text("echo B\n")
                await client.send_action("confirm", source=component)
                await client.turn_done()
                assert behind.ran == [("shell", {"command": "sh run.sh"})]
                (requested,) = await facts_of(tmp_path, "permission.requested")
                assert "files" not in requested


async def test_denial_reaches_the_agent_with_its_reason(tmp_path: Path) -> None:
    steps: list[Step] = [Uses("shell", {"command": "rm a"}, asks=True), Says("Then not.")]
    async with shown({"go": steps}, tmp_path) as (client, fake, _):
        await client.send_text("go")
        (component,) = await until(client, lambda: asked(client))
        await client.send_action("deny", {"reason": "keep it"}, source=component)
        turn = await client.turn_done()
        assert turn.tools[0].ok is False
        assert turn.tools[0].error == "denied: keep it"
        assert "code-block" not in types(client, turn.id), "nothing ran, so there is no output"
        assert fake.ran == []


async def test_reason_of_a_denial_follows_where_a_denial_carries_none(tmp_path: Path) -> None:
    denied = Uses("shell", {"command": "rm a"}, asks=True, takes_message=False)
    async with shown({"go": [denied]}, tmp_path) as (client, fake, _):
        await client.send_text("go")
        (component,) = await until(client, lambda: asked(client))
        await client.send_action("deny", {"reason": "keep it"}, source=component)
        turn = await client.turn_done()
        assert turn.status == "completed"
        sent = [one for name, one in fake.called if name == "send_message"]
        assert [one.message.content for one in sent if isinstance(one, ari.SendMessageRequest)] == [
            "go",
            "I have denied 'shell: rm a': keep it",
        ]
        assert fake.ran == []
        assert texts(client, turn.id) == [
            "fake has received: keep it",
            "You said: I have denied 'shell: rm a': keep it",
        ]
        denials = [one for name, one in fake.called if name == "respond_permission"]
        assert isinstance(denials[0], ari.RespondPermissionRequest)
        assert denials[0].response == ari.PermissionResponse("deny")


async def test_denied_again_is_told_again(tmp_path: Path) -> None:
    denied = Uses("shell", {"command": "rm a"}, asks=True, takes_message=False)
    follows = "I have denied 'shell: rm a': keep it"
    script: dict[str, list[Step]] = {"go": [denied], follows: [denied]}
    async with shown(script, tmp_path) as (client, fake, _):
        await client.send_text("go")
        for reason in ("keep it", "I said no"):
            (component,) = await until(client, lambda: asked(client))
            await client.send_action("deny", {"reason": reason}, source=component)
            await until(client, lambda: not asked(client))
        turn = await client.turn_done()
        sent = ["fake has received: keep it", "fake has received: I said no"]
        assert texts(client, turn.id)[:2] == sent
        assert fake.calls("send_message") == 3


async def test_reason_that_cannot_follow_is_shown_as_not_told(tmp_path: Path) -> None:
    denied = Uses("shell", {"command": "rm a"}, asks=True, takes_message=False)
    script: dict[str, list[Step]] = {"go": [denied, Fails(Unavailable("no model"))]}
    async with shown(script, tmp_path) as (client, fake, _):
        await client.send_text("go")
        (component,) = await until(client, lambda: asked(client))
        await client.send_action("deny", {"reason": "keep it"}, source=component)
        turn = await client.turn_done()
        assert turn.status == "failed"
        assert texts(client, turn.id) == ["fake has not received: keep it"]
        assert fake.calls("send_message") == 1


async def test_retry_is_a_card_until_the_model_answers_and_then_a_line(tmp_path: Path) -> None:
    again = Tells(ari.Lifecycle.RETRYING, details={"attempt": 1, "delay_ms": 2000})
    other = Tells(ari.Lifecycle.RETRYING, "busy", {"attempt": 2, "http_status": 529})
    steps: list[Step] = [again, other, Waits(), Says("Here I am.")]
    async with shown({"go": steps}, tmp_path) as (client, fake, server):
        await client.send_text("go")
        (card,) = await until(client, lambda: cards(client, "Retry 2"))
        assert card.type == "status-card"
        told = "The model answered 529; it is asked again.\nbusy"
        assert (card.props["status"], card.props["message"]) == ("warning", told)
        server.call(fake.proceed)
        turn = await client.turn_done()
        line, _ = client.screen.output(turn.id)
        assert (line.id, line.type) == (card.id, "text")
        assert line.props["content"] == "The model answered after 2 retries."
        async with connect(server.http, session_id="s") as other_screen:
            await until(other_screen, lambda: other_screen.screen.turns)
            assert texts(other_screen, turn.id) == [line.props["content"], "Here I am."]


async def test_retries_that_fail_end_as_a_line_too(tmp_path: Path) -> None:
    again = Tells(ari.Lifecycle.RETRYING)
    script: dict[str, list[Step]] = {"go": [again, Fails(Unavailable("overloaded"))]}
    async with shown(script, tmp_path) as (client, _, _):
        turn = await client.ask("go")
        assert texts(client, turn.id) == ["No answer after 1 retry."]
        assert [error.error for error in turn.errors] == ["fake: overloaded"]


async def test_file_that_the_runtime_does_not_take_is_named(tmp_path: Path) -> None:
    async with shown({}, tmp_path) as (client, fake, _):
        fake.part_types = frozenset({"text", "image"})  # type: ignore[misc]  # of this one alone
        sent = await client.send_files([("a.png", b"\x89PNG"), ("b.pdf", b"%PDF-1.7")], "look")
        turn = await client.turn_done(await client.turn_of(sent))
        (error,) = turn.errors
        assert error.error == (
            "fake: the file 'b.pdf' (application/pdf) was not sent: "
            "file parts cannot be taken, only image, text"
        )
        sent = await client.send_files([("a.png", b"\x89PNG")], "look")
        assert (await client.turn_done(await client.turn_of(sent))).status == "completed"
        message = [one for name, one in fake.called if name == "send_message"][-1]
        assert isinstance(message, ari.SendMessageRequest)
        (part,) = message.message.parts
        assert (part.type, part.name, part.data) == ("image", "a.png", b"\x89PNG")


async def test_switches_survive_a_restart(tmp_path: Path) -> None:
    offers = RuntimeOffers(models=("fake-1", "fake-2"), providers=("here", "there"))
    async with shown({}, tmp_path, offers=offers) as (client, _, _):
        await client.ask("one")
        await client.ask("/model fake-2")
        await client.ask("/provider there")
    async with shown({}, tmp_path, offers=offers) as (client, fake, _):
        await client.ask("two")
        (session_id,) = kept(fake)
        native = fake.native_session(session_id)
        assert (native.model, native.provider) == ("fake-2", "there")
    async with shown({}, tmp_path, offers=RuntimeOffers(models=("fake-1",))) as (client, fake, _):
        await client.ask("three")
        native = fake.native_session(session_id)
        assert (native.model, native.provider) == ("", ""), "what is not offered is not taken"


def cards(client: ArpClient, title: str) -> list[Component]:
    """Return the components with a title."""
    return [
        one
        for turn in client.screen.turns
        for one in client.screen.output(turn)
        if one.props.get("title") == title
    ]


def texts(client: ArpClient, turn_id: str) -> list[str]:
    """Return the contents of the text components."""
    return [one.props["content"] for one in client.screen.output(turn_id) if one.type == "text"]


async def test_two_permissions_at_once(tmp_path: Path) -> None:
    async def both(turn: Any) -> None:
        async def use(name: str) -> None:
            with turn.tool("shell", {"command": name}) as call:
                answer = await call.allowed(summary=name)
                call.result(answer.decision)

        await asyncio.gather(use("a"), use("b"))

    async with shown({}, tmp_path) as (client, fake, _):
        fake.function = both
        await client.send_text("go")
        await until(client, lambda: len(asked(client)) == 2)
        first, second = asked(client)
        await client.send_action("deny", source=second)
        await client.send_action("confirm", source=first)
        turn = await client.turn_done()
        assert [tool.ok for tool in turn.tools] == [True, False]


async def test_turn_that_failed_at_the_runtime_is_over_there(tmp_path: Path) -> None:
    """It is shown as failed at once: nothing is cancelled, and nothing else is waited for."""
    async with shown({"go": [Says("One."), Fails(Unavailable("out of credit"))]}, tmp_path) as (
        client,
        fake,
        _,
    ):
        turn = await client.ask("go")
        assert turn.status == "failed"
        assert fake.calls("cancel_turn") == 0


async def test_cancel_reaches_the_runtime_and_closes_the_question(tmp_path: Path) -> None:
    steps: list[Step] = [Uses("shell", {"command": "rm a"}, asks=True)]
    async with shown({"go": steps}, tmp_path) as (client, fake, _):
        await client.send_text("go")
        await until(client, lambda: asked(client))
        await client.cancel()
        turn = await client.turn_done()
        assert turn.status == "cancelled"
        assert fake.calls("cancel_turn") == 1
        assert fake.ran == []
        assert asked(client) == {}


async def test_answer_after_a_cancel_does_not_reach_a_runtime_that_stops_slowly(
    tmp_path: Path,
) -> None:
    steps: list[Step] = [Uses("shell", {"command": "rm a"}, asks=True)]
    async with shown({"go": steps}, tmp_path) as (client, fake, server):
        cancelling, begun, released = fake.cancel_turn, asyncio.Event(), asyncio.Event()

        async def slowly(request: ari.CancelTurnRequest) -> ari.CancelTurnResponse:
            begun.set()
            await released.wait()
            return await cancelling(request)

        fake.cancel_turn = slowly  # type: ignore[method-assign]  # a runtime far away
        await client.send_text("go")
        (component,) = await until(client, lambda: asked(client))
        await client.cancel()
        await becomes(begun.is_set)
        await client.send_action("confirm", source=component)
        await until(client, lambda: not asked(client))
        resolved = await fact_of(tmp_path, "permission.resolved")
        assert resolved["decision"] == "cancelled"
        server.call(released.set)
        turn = await client.turn_done()
        assert turn.status == "cancelled"
        assert fake.calls("respond_permission") == 0
        assert fake.ran == []


async def test_failure_of_the_runtime_is_shown(tmp_path: Path) -> None:
    script: dict[str, list[Step]] = {"go": [Fails(Unavailable("the model does not answer"))]}
    async with shown(script, tmp_path) as (client, fake, _):
        turn = await client.ask("go")
        assert turn.status == "failed"
        assert [error.error for error in turn.errors] == ["fake: the model does not answer"]
        fake.inject_error("send_message", Unavailable("no process"))
        turn = await client.ask("again")
        assert [error.error for error in turn.errors] == ["fake: no process"]


async def test_session_is_found_again_after_a_restart(tmp_path: Path) -> None:
    async with shown({}, tmp_path) as (client, fake, _):
        await client.ask("one")
        created = fake.calls("create_session")
    assert created == 1
    async with shown({}, tmp_path) as (client, again, _):
        turn = await client.ask("two")
        assert client.screen.text(turn.id) == "You said: two"
        assert again.calls("create_session") == 0
        assert again.calls("resume_session") == 1
        (session,) = (kept(again)).values()
        assert [message.content for message in session] == [
            "one", "You said: one", "two", "You said: two",
        ]  # fmt: skip


def kept(fake: FakeRuntime) -> dict[str, list[ari.RuntimeMessage]]:
    """Return the messages of each session that is kept."""
    directory = fake.directory
    assert directory is not None
    return {file.stem: fake.kept(file.stem) for file in directory.glob("*.jsonl")}


async def edit(server: Serving, turn_id: str, text: str, answer: str) -> None:
    """Edit the input of a turn, and wait for the answer."""
    heard = ""
    async with websocket(server.ws) as socket:
        hello = {"capabilities": {"components": ["text"]}, "session_id": "s"}
        await socket.send(json.dumps({"v": 1, "type": "hello", **hello}))
        again = {"input_type": "text", "data": {"text": text}, "edits": turn_id}
        await socket.send(json.dumps({"v": 1, "type": "input", "session_id": "s", **again}))
        while not heard.endswith(answer):
            message = json.loads(await socket.recv())
            heard += message["payload"]["delta"] if message["type"] == "delta" else ""


async def test_edit_gives_the_agent_the_branch_and_nothing_else(tmp_path: Path) -> None:
    async with shown({}, tmp_path) as (client, fake, server):
        await client.ask("one")
        edited = await client.ask("two")
        await edit(server, edited.id, "three", "You said: three")
        sent = [one for name, one in fake.called if name == "send_message"]
        assert fake.calls("create_session") == 2
        assert isinstance(sent[-1], ari.SendMessageRequest)
        created = [one for name, one in fake.called if name == "create_session"][-1]
        assert isinstance(created, ari.CreateSessionRequest)
        assert [(one.role, one.content) for one in created.history] == [
            ("user", "one"),
            ("assistant", "You said: one"),
        ]
        assert sent[-1].message.content == "three"


async def test_what_is_kept_of_a_session_does_not_grow_with_its_turns(tmp_path: Path) -> None:
    """The newest turns are kept; a restart and an edit still know what the runtime has heard."""
    many = 3 * MAX_KNOWN_TURNS
    async with shown({}, tmp_path) as (client, fake, _):
        for number in range(many):
            turn = await client.ask(f"number {number}")
        assert fake.calls("create_session") == 1
    states = [one["state"] for one in await facts_of(tmp_path, "session.updated") if "state" in one]
    assert states[-1][STATE_KEY]["turns"][-1] == turn.id
    sizes = [len(json.dumps(one)) for one in states]
    assert sizes[-1] < 600
    assert max(sizes) == sizes[-1] == sizes[-MAX_KNOWN_TURNS]
    async with shown({}, tmp_path) as (client, again, server):
        await client.ask("after a restart")
        assert (again.calls("create_session"), again.calls("resume_session")) == (0, 1)
        (sent,) = [one for name, one in again.called if name == "send_message"]
        assert isinstance(sent, ari.SendMessageRequest)
        assert sent.message.content == "after a restart"
        await edit(server, turn.id, "edited", "You said: edited")
        created = [one for name, one in again.called if name == "create_session"][-1]
        assert isinstance(created, ari.CreateSessionRequest)
        assert created.history[-1].content == f"You said: number {many - 2}"


async def test_turn_that_the_runtime_begins_is_shown_as_such(tmp_path: Path) -> None:
    async with shown({}, tmp_path) as (client, fake, server):
        await client.ask("one")

        def begin() -> None:
            (session_id,) = kept(fake)
            feed = fake.session(session_id).feed
            feed.begin(origin="runtime")
            feed.text("The build is done.")
            feed.result()

        server.call(begin)
        turn_id = await until(
            client,
            lambda: [
                turn.id
                for turn in client.screen.turns.values()
                if "build" in client.screen.text(turn.id) and turn.status == "completed"
            ],
        )
        assert client.screen.turns[turn_id[0]].inputs[0].origin == "fake"


async def test_model_and_mode_are_switched_within_what_is_offered(tmp_path: Path) -> None:
    offers = RuntimeOffers(models=("fake-2",))
    async with shown({}, tmp_path, offers=offers) as (client, fake, _):
        await client.ask("one")
        names = {command.name: command for command in client.commands}
        assert [choice.value for choice in names["model"].choices] == ["fake-2"]
        assert [choice.value for choice in names["mode"].choices] == ["ask"]
        assert "provider" not in names
        turn = await client.ask("/model fake-2")
        assert client.screen.text(turn.id) == "The model is now fake-2."
        turn = await client.ask("/mode free")
        assert client.screen.text(turn.id).startswith("There is no mode 'free' here")
        assert fake.calls("set_mode") == 0
        assert fake.calls("set_model") == 1


async def test_mode_without_approvals_is_not_taken_where_none_is_offered(tmp_path: Path) -> None:
    async with shown({}, tmp_path) as (client, fake, _):
        fake.modes = (ari.Choice("free", asks=False),)
        turn = await client.ask("/mode free")
        assert "There is no mode 'free' here; choose one of: none." in client.screen.text(turn.id)
        assert fake.calls("set_mode") == 0


async def test_rule_for_the_session_is_the_runtimes_to_apply(tmp_path: Path) -> None:
    """Another command with the same suggestion is asked: the words do not say that it is a case."""
    rule = ari.PermissionRule("dir", "Count /tmp as a directory of this work")
    script: dict[str, list[Step]] = {
        name: [Uses("shell", {"command": name}, asks=True, rules=(rule,))] for name in ("ls", "rm")
    }
    async with shown(script, tmp_path) as (client, fake, _):
        for name, action in (("ls", "confirm"), ("rm", "deny")):
            await client.send_text(name)
            (component,) = await until(client, lambda: asked(client))
            scope = {"scope": "session"} if action == "confirm" else {}
            await client.send_action(action, scope, source=component)
            await client.turn_done()
        assert fake.ran == [("shell", {"command": "ls"})]


async def test_idle_session_is_closed_and_resumed_with_its_next_message(tmp_path: Path) -> None:
    limits = RuntimeLimits(idle_s=0.05)
    async with shown({}, tmp_path, limits=limits) as (client, fake, server):
        await client.ask("one")
        (session_id,) = kept(fake)
        state = fake.session(session_id).feed
        await becomes(lambda: state.state is ari.SessionState.CLOSED)
        turn = await client.ask("two")
        assert client.screen.text(turn.id) == "You said: two"
        assert fake.calls("resume_session") == 1
        assert list(kept(fake)) == [session_id]
        assert server.call(lambda: fake.session(session_id).log.last) > 0


async def test_open_sessions_are_bounded(tmp_path: Path) -> None:
    script: dict[str, list[Step]] = {"wait": [Waits()]}
    limits = RuntimeLimits(max_open=2)
    async with shown(script, tmp_path, limits=limits) as (client, fake, server):
        await client.ask("one")
        others = [connect(server.http, session_id=f"s{number}") for number in range(3)]
        async with others[0] as first, others[1] as second, others[2] as third:
            await first.send_text("wait")
            await second.send_text("wait")
            await becomes(lambda: fake.calls("send_message") == 3)
            assert fake.calls("close_session") == 1
            turn = await third.ask("no room")
            assert turn.status == "failed"
            assert "2 sessions are at work already" in turn.errors[0].error


async def test_cancel_while_the_message_is_sent_stops_the_runtime(tmp_path: Path) -> None:
    async with shown({}, tmp_path) as (client, fake, _):
        await client.ask("one")
        sending, slow = fake.send_message, asyncio.Event()

        async def slowly(request: ari.SendMessageRequest) -> ari.SendMessageResponse:
            await sending(request)
            await slow.wait()
            raise AssertionError("it was cancelled")

        fake.script["go"] = [Waits()]
        fake.send_message = slowly  # type: ignore[method-assign]  # the answer is lost on its way
        await client.send_text("go")
        await becomes(lambda: fake.calls("send_message") == 2)
        await client.cancel()
        turn = await client.turn_done()
        assert turn.status == "cancelled"
        assert fake.calls("cancel_turn") == 1


async def test_page_that_goes_away_stops_nothing(tmp_path: Path) -> None:
    steps: list[Step] = [Says("One."), Waits(), Says("Two.")]
    async with shown({"go": steps}, tmp_path) as (client, fake, server):
        async with connect(server.http, session_id="s") as other:
            await other.send_text("go")
            await until(other, lambda: [t for t in other.screen.turns if other.screen.text(t)])
        server.call(fake.proceed)
        turn = await client.turn_done()
        assert client.screen.text(turn.id) == "One.Two."


async def test_answer_after_a_restart_runs_nothing_and_tells_the_agent(tmp_path: Path) -> None:
    script: dict[str, list[Step]] = {"go": [Uses("shell", {"command": "rm a"}, asks=True)]}
    async with shown(script, tmp_path) as (client, fake, _):
        await client.ask("hello")
        await client.send_text("go")
        await until(client, lambda: asked(client))
    async with shown(script, tmp_path) as (client, again, _):
        (component,) = await until(client, lambda: asked(client))
        answer = await client.send_action("confirm", source=component)
        await client.turn_done(await client.turn_of(answer))
        sent = [one for name, one in again.called if name == "send_message"]
        assert isinstance(sent[-1], ari.SendMessageRequest)
        assert sent[-1].message.content.startswith("Your work was interrupted. The user agrees")
        assert fake.ran == again.ran == []
        assert asked(client) == {}
