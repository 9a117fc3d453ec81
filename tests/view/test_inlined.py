"""Popups and overlays for renderers that have neither: in the output of their turn."""

from __future__ import annotations

from typing import Any

from arp.protocol.catalog import VERSIONS
from arp.protocol.components import Component
from arp.protocol.messages import RendererCapabilities, SurfaceInfo
from arp.protocol.patch import Remove, Update
from arp.session.recording.recorded import RecordedFact
from arp.session.surfaces import close_surface, open_surface
from arp.surface.change import PatchChange, RenderChange
from arp.view.frames import FrameGroup
from arp.view.inlined import main_for
from arp.view.profile import Profile, profile_of
from arp.view.replay import replayed
from tests.session.conversation import begun, facts, text
from tests.session.programs import Watcher

POPUP = SurfaceInfo(role="popup", parent="main", title="Popup")
CORE = profile_of(RendererCapabilities(dict(VERSIONS), ["patch-append"]))
RICH = profile_of(RendererCapabilities(dict(VERSIONS), ["multi-surface", "overlays"]))
MINIMAL = profile_of(RendererCapabilities(["text"]))


def opened(*profiles: Profile) -> tuple[Any, list[Watcher]]:
    """A session whose turn t1 has said something, opened a popup and said more."""
    session = begun()
    watchers = [Watcher(str(number), one) for number, one in enumerate(profiles)]
    for watcher in watchers:
        watcher.attach(session)
        watcher.join(session)
    session.say("t1", "before ")
    shown = RenderChange([text("a", "one"), Component("q", "confirm", {"title": "Sure?"})])
    open_surface(session, "t1", "t1-popup-1", POPUP, [shown])
    session.say("t1", "after")
    return session, watchers


def deliver(session: Any, watchers: list[Watcher]) -> list[Any]:
    drained = session.drain("2026-11-21T08:00:00.000000Z")
    for watcher in watchers:
        watcher.deliver(session, drained.recorded, drained.cursor)
    return list(drained.recorded)


def output(watcher: Watcher) -> list[Any]:
    """What a renderer shows of the turn: a text, or the type and id of a component."""
    return [
        one.props.get("content") or (one.type, one.id, [c["id"] for c in one.props["children"]])
        for one in watcher.connection.screen.output("t1")
    ]


def test_a_group_in_the_output_holds_the_components_under_ids_of_their_own() -> None:
    session, watchers = opened(CORE, RICH)
    deliver(session, watchers)
    plain, rich = watchers
    ids = ["t1-popup-1/a", "t1-popup-1/q"]
    assert output(plain) == ["before ", ("group", "t1-popup-1", ids), "after"]
    assert output(rich) == ["before ", ("group", "t1-popup-1", []), "after"]
    assert set(plain.connection.screen.surfaces) == {"main"}
    assert set(rich.connection.screen.surfaces) == {"main", "t1-popup-1"}
    assert rich.connection.screen.info("t1-popup-1") == POPUP


def test_it_follows_each_change_and_goes_when_the_popup_is_closed() -> None:
    session, watchers = opened(CORE)
    (plain,) = watchers
    session.commit("t1", "t1-popup-1", [PatchChange([Update("a", "props.content", "two")])])
    session.commit("t1", "t1-popup-1", [PatchChange([Remove("q")]), RenderChange([text("b")])])
    deliver(session, watchers)
    assert output(plain)[1] == ("group", "t1-popup-1", ["t1-popup-1/a", "t1-popup-1/b"])
    group = plain.connection.screen.output("t1")[1]
    assert group.props["children"][0]["props"] == {"content": "two"}
    assert plain.snapshots == 0
    close_surface(session, "t1-popup-1", "user")
    deliver(session, watchers)
    assert output(plain) == ["before ", "after"]


def test_a_renderer_without_groups_has_the_components_one_by_one() -> None:
    session, watchers = opened(MINIMAL)
    deliver(session, watchers)
    (minimal,) = watchers
    shown = [(one.id, one.type) for one in minimal.connection.screen.output("t1")]
    assert [one for one in shown if "popup" in one[0]] == [
        ("t1-popup-1/a", "text"),
        ("t1-popup-1/q", "text"),
    ]
    session.commit("t1", "t1-popup-1", [RenderChange([text("b")])])
    deliver(session, watchers)
    shown = [(one.id, one.type) for one in minimal.connection.screen.output("t1")]
    assert shown[1:-1][-1] == ("t1-popup-1/b", "text")
    close_surface(session, "t1-popup-1", "timeout")
    deliver(session, watchers)
    assert not any("popup" in one.id for one in minimal.connection.screen.output("t1"))


def test_what_is_in_a_fallback_gets_its_id_from_what_it_stands_for() -> None:
    session, watchers = opened(CORE)
    fallback = Component(
        "", "group", {"children": [{"id": "", "type": "text", "props": {"content": "f"}}]}
    )
    dial = Component("dial", "x-acme-dial", {}, fallback=fallback)
    session.commit("t1", "t1-popup-1", [RenderChange([dial])])
    deliver(session, watchers)
    (plain,) = watchers
    children = plain.connection.screen.output("t1")[1].props["children"]
    names = [one["id"] for one in children]
    assert names == ["t1-popup-1/a", "t1-popup-1/q", "t1-popup-1/dial"]


def test_a_replay_of_a_popup_needs_a_snapshot_without_overlays_only() -> None:
    session, _ = opened()
    log = facts(session)
    assert replayed(log, FrameGroup(CORE, "json")) is None
    made = replayed(log, FrameGroup(RICH, "json"))
    assert made is not None
    assert any(b'"type":"surface"' in frame for frame in made.frames)


def test_the_tree_of_the_session_is_not_changed_by_who_reads_it() -> None:
    session, _ = opened()
    main = main_for(session.screen, CORE)
    assert len(main.component("t1-popup-1").props["children"]) == 2
    assert session.screen.main.component("t1-popup-1").props == {"children": []}
    assert main_for(session.screen, RICH) is session.screen.main
    close_surface(session, "t1-popup-1", "agent")
    assert main_for(session.screen, CORE) is session.screen.main


def test_a_renderer_that_knows_main_alone_gets_what_was_closed_emptied() -> None:
    session, watchers = opened(CORE, RICH)
    session.commit("t1", "side", [RenderChange([text("a", "x")])])
    deliver(session, watchers)
    plain, rich = watchers
    assert len(plain.connection.screen.surfaces["side"].output()) == 1
    close_surface(session, "side", "agent")
    recorded = deliver(session, watchers)
    assert any(isinstance(one, RecordedFact) for one in recorded)
    assert plain.connection.screen.surfaces["side"].output() == []
    assert "side" not in rich.connection.screen.surfaces
