"""What an agent remembers: `turn.messages`, `turn.parent` and `turn.branch`."""

from __future__ import annotations

from typing import Any

from arp import Turn, ui
from arp.turn.past_messages import PastMessages
from tests.hub.rig import ALL, HeldStore, Renderer, running, settled
from tests.hub.test_branches import BRANCHES, edits, talked, turns_to

Seen = dict[str, tuple[PastMessages, str | None, str]]


def recalls(seen: Seen) -> Any:
    """Return an agent that uses a tool, shows a table and asks, as its text says."""

    async def agent(turn: Turn) -> None:
        seen[turn.id] = (turn.messages(), turn.parent, turn.branch)
        match turn.text:
            case "weather":
                turn.show(ui.table(["city", "sky"], [["Bern", "clear"]]))
                async with turn.tool("look up", {"city": "Bern"}) as tool:
                    tool.result("clear")
                await turn.say("It is clear.")
            case "fails":
                async with turn.tool("break", ["x"]) as tool:
                    tool.fail("no such thing")
            case "ask":
                colour = await turn.ask(ui.text_input("Which colour?", id="colour"))
                await turn.say(f"You like {colour}.")
            case _:
                await turn.say(f"re {turn.text}")

    return agent


async def test_messages_hold_text_tools_and_results_in_order() -> None:
    seen: Seen = {}
    async with running(recalls(seen)) as hub:
        await talked(hub, "hello", "weather", "now")
    past = seen["t3"][0]
    assert [(one.role, one.turn_id, one.text) for one in past] == [
        ("user", "t1", "hello"),
        ("assistant", "t1", "re hello"),
        ("user", "t2", "weather"),
        ("assistant", "t2", "city  sky\n----  -----\nBern  clear"),
        ("assistant", "t2", "It is clear."),
    ]
    (call,) = past[3].calls
    assert (call.name, call.args, call.result, call.ok) == (
        "look_up", {"city": "Bern"}, "clear", True,
    )  # fmt: skip
    assert [component.type for component in past[3].shown] == ["table"]


async def test_a_tool_that_failed_says_why() -> None:
    seen: Seen = {}
    async with running(recalls(seen)) as hub:
        await talked(hub, "fails", "now")
    (call,) = seen["t2"][0][1].calls
    assert (call.args, call.result, call.ok) == ({"input": ["x"]}, "no such thing", False)


async def test_an_answer_is_a_message_of_the_user() -> None:
    seen: Seen = {}
    async with running(recalls(seen)) as hub:
        user = await talked(hub)
        await user.say("ask")
        await user.box.until(lambda: bool(user.screen.output("t1")))
        await user.send("text", {"text": "blue"}, source_component="colour", id="answer")
        await user.ended("t1")
        await user.say("now")
        await user.ended("t2")
    past = seen["t2"][0]
    assert [(one.role, one.text, one.answers) for one in past][2:] == [
        ("user", "blue", "colour"),
        ("assistant", "You like blue.", None),
    ]
    assert past[1].shown[0].type == "text-input"
    assert "Which colour?" in past[1].text


async def test_forms_for_models_have_every_call_with_its_result() -> None:
    seen: Seen = {}
    async with running(recalls(seen)) as hub:
        await talked(hub, "weather", "fails", "now")
    past = seen["t3"][0]
    call, failed = past[1].calls[0], past[4].calls[0]
    assert past.as_openai() == [
        {"role": "user", "content": "weather"},
        {
            "role": "assistant",
            "content": "city  sky\n----  -----\nBern  clear",
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": "look_up", "arguments": '{"city": "Bern"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": call.id, "content": "clear"},
        {"role": "assistant", "content": "It is clear."},
        {"role": "user", "content": "fails"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": failed.id,
                    "type": "function",
                    "function": {"name": "break", "arguments": '{"input": ["x"]}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": failed.id, "content": "no such thing"},
    ]
    anthropic = past.as_anthropic()
    assert [one["role"] for one in anthropic] == [
        "user", "assistant", "user", "assistant", "user", "assistant", "user",
    ]  # fmt: skip
    assert anthropic[2]["content"] == [
        {"type": "tool_result", "tool_use_id": call.id, "content": "clear", "is_error": False}
    ]
    assert anthropic[6]["content"][0]["is_error"] is True


async def test_the_last_messages_are_those_that_a_limit_leaves() -> None:
    seen: Seen = {}
    lengths: list[int] = []

    async def agent(turn: Turn) -> None:
        lengths.extend(len(turn.messages(limit)) for limit in (0, 1, 3))
        seen[turn.id] = (turn.messages(3), turn.parent, turn.branch)
        await turn.say("yes")

    async with running(agent) as hub:
        await talked(hub, "a", "b", "c")
    assert lengths[-3:] == [0, 1, 3]
    assert [one.text for one in seen["t3"][0]] == ["yes", "b", "yes"]


async def test_an_edit_has_another_parent_and_a_branch_of_its_own() -> None:
    seen: Seen = {}
    async with running(recalls(seen)) as hub:
        user = await talked(hub, "my name is Ann", "and then", features=BRANCHES)
        await edits(user, "t2", "my name is Bob", "t3")
        await user.say("who am I")
        await user.ended("t4")
        await turns_to(user, "arp.branch", "t2")
        await user.say("back")
        await user.ended("t5")
    assert {turn: place[1:] for turn, place in seen.items()} == {
        "t1": (None, "main"),
        "t2": ("t1", "main"),
        "t3": ("t1", "t3"),
        "t4": ("t3", "t3"),
        "t5": ("t2", "main"),
    }
    said = [one.text for one in seen["t4"][0] if one.role == "user"]
    assert said == ["my name is Ann", "my name is Bob"]
    said = [one.text for one in seen["t5"][0] if one.role == "user"]
    assert said == ["my name is Ann", "and then"]


async def test_they_are_the_same_after_a_restart() -> None:
    seen: Seen = {}
    store = HeldStore()
    async with running(recalls(seen), store=store) as hub:
        await talked(hub, "weather", "now")
        await settled(hub)
    before = seen["t2"][0].as_openai()
    async with running(recalls(seen), store=store) as hub:
        user = await Renderer(hub).join()
        await user.say("again")
        await user.ended("t3")
    assert seen["t3"][0].as_openai()[: len(before)] == before


async def test_author_stands_above_what_he_says_and_is_in_the_memory() -> None:
    """`turn.say(text, author=…)`: once, however many texts follow."""
    past: list[Any] = []

    async def agent(turn: Turn) -> None:
        if turn.text == "next":
            past.extend(turn.messages())
            return
        await turn.say("I ask. ")
        await turn.say("It is ", author="Research *Desk*")
        await turn.say("42.", author="Research *Desk*")
        await turn.say(" Sure.")
        await turn.say("Thanks.", author="")

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        native = await Renderer(hub, components=[*ALL, "x-arp-author"]).join()
        await renderer.say("go")
        await renderer.ended("t1")
        await renderer.say("next")
        await renderer.ended("t2")
        shown = [(one.type, one.props) for one in native.screen.output("t1")]
        assert [props for kind, props in shown if kind == "x-arp-author"] == [
            {"name": "Research *Desk*"},
            {"name": "agent"},
        ]
        texts = [one.props["content"] for one in renderer.screen.output("t1")]
        assert texts == [
            "I ask. ",
            "**Research \\*Desk\\***",
            "It is 42. Sure.",
            "**agent**",
            "Thanks.",
        ]
    assert [(one.author, one.text) for one in past[1:]] == [
        ("", "I ask. "),
        ("Research *Desk*", "It is 42. Sure."),
        ("agent", "Thanks."),
    ]
