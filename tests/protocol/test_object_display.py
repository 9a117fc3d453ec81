"""Two agents on one renderer: surfaces go from one to the other, and nothing else does."""

from __future__ import annotations

import json
import re
from random import Random

import pytest

from arp.protocol.components import Component
from arp.protocol.errors import ArpError
from arp.protocol.limits import Limits
from arp.protocol.objects.agent import ObjectAgentConnection
from arp.protocol.objects.connection import RefusedMessage
from arp.protocol.objects.display import ObjectDisplay, SurfaceTransferred
from arp.protocol.objects.messages import (
    DisplayErrorEvent,
    InputAckRequest,
    InputInputEvent,
    SurfaceCommitRequest,
    SurfacePatchRequest,
    SurfaceRenderRequest,
    SurfaceSurfaceAcquiredEvent,
    SurfaceTransferredEvent,
    SurfaceTransferRequest,
)
from arp.protocol.objects.renderer import ObjectRendererConnection, offers
from arp.protocol.objects.wire import ObjectMessage
from arp.protocol.patch import PatchOp, Update

LIMITS = Limits(max_surfaces=5)

MARK = re.compile(r"secret-[AB]-\d+")


class TwoAgents:
    """A renderer with two agents; nothing is ever under way."""

    def __init__(self, display: ObjectDisplay | None = None) -> None:
        self.display = display or ObjectDisplay()
        self.agents: dict[str, ObjectAgentConnection] = {}
        self.known: dict[str, set[str]] = {"A": set(), "B": set()}
        """The secrets that an agent has made, or was given."""
        self.handed: list[SurfaceTransferred] = []
        self.now_s = 0.0
        self.answers = True
        """Whether an agent takes what it is offered."""
        self._count = 0
        for name in ("A", "B"):
            renderer = ObjectRendererConnection("json", LIMITS, offers({"text": 1}))
            self.display.attach(name, renderer)
            agent = self.agents[name] = ObjectAgentConnection("json", LIMITS)
            agent.get_registry()
            self.exchange()
            for interface in ("ArpCompositor", "ArpShell", "ArpInput", "ArpSession"):
                agent.bind(interface)
            agent.create_session(f"session-{name}", {})
            self.exchange()

    def secret(self, name: str) -> str:
        self._count += 1
        made = f"secret-{name}-{self._count}"
        self.known[name].add(made)
        return made

    def exchange(self) -> dict[str, list[object]]:
        """Deliver everything; return what each agent got. Fail if it may not know of it."""
        got: dict[str, list[object]] = {name: [] for name in self.agents}
        for _ in range(3):
            for name, agent in self.agents.items():
                for frame in agent.data_to_send():
                    for event in self.display.receive(name, frame, self.now_s):
                        if isinstance(event, SurfaceTransferred):
                            self.handed.append(event)
            for name, agent in self.agents.items():
                for frame in self.display.agents[name].data_to_send():
                    events = agent.receive(frame, self.now_s)
                    for event in events:
                        self._note(name, event)
                    assert set(MARK.findall(frame.decode())) <= self.known[name], frame
                    got[name] += events
        return got

    def _note(self, name: str, event: object) -> None:
        match event:
            case ObjectMessage(new_id, payload=SurfaceSurfaceAcquiredEvent(components)):
                for one in components or ():
                    self.known[name].update(MARK.findall(one.props["content"]))
                if self.answers:
                    self.agents[name].get_toplevel(new_id)
            case _:
                pass

    def shown(self, name: str) -> set[str]:
        """The secrets on surfaces of an agent."""
        renderer = self.display.agents[name]
        shown = [one for key in renderer.objects.surfaces for one in renderer.content(key)]
        return {found for one in shown for found in MARK.findall(one.props["content"])}

    def show(self, name: str, surface: int) -> str:
        said = self.secret(name)
        agent = self.agents[name]
        component = Component("c", "text", {"content": said})
        agent.send(surface, SurfaceRenderRequest([component]))
        agent.send(surface, SurfaceCommitRequest())
        self.exchange()
        self.display.agents[name].displayed(surface)
        self.exchange()
        return said

    def surface(self, name: str) -> int:
        made = self.agents[name].create_surface(f"of {name}")
        self.agents[name].get_toplevel(made)
        self.exchange()
        return made


@pytest.mark.parametrize("retains", [True, False])
def test_surface_goes_to_the_other_agent_with_or_without_its_content(retains: bool) -> None:
    """docs/protocol.md, "Transfer"; the old owner has it until it is accepted. Spec: O23, O27."""
    both = TwoAgents()
    surface = both.surface("A")
    said = both.show("A", surface)
    both.answers = False
    both.agents["A"].send(surface, SurfaceTransferRequest("session-B", retains, "t1"))
    got = both.exchange()
    (come,) = [one for one in got["B"] if isinstance(one, ObjectMessage)]
    assert isinstance(come.payload, SurfaceSurfaceAcquiredEvent)
    assert come.payload.transfer_id == "t1"
    shown = [one.props["content"] for one in come.payload.components or ()]
    assert shown == ([said] if retains else [])
    assert (got["A"], both.handed) == ([], [])
    both.agents["B"].get_toplevel(come.object_id)
    (gone,) = both.exchange()["A"]
    assert isinstance(gone, ObjectMessage)
    assert (gone.object_id, gone.payload) == (surface, SurfaceTransferredEvent())
    assert both.handed == [SurfaceTransferred("A", surface, "B", come.object_id)]
    assert surface not in both.agents["A"].objects.entries
    both.show("B", come.object_id)
    both.agents["B"].destroy(come.object_id)
    both.exchange()
    assert both.display.agents["B"].objects.surfaces == {}


def test_transfer_is_denied_in_the_same_words_whatever_the_reason() -> None:
    """An agent learns nothing of sessions that are not its own. Spec: O24."""
    both = TwoAgents(ObjectDisplay(lambda giver, taker: giver == "B"))
    told = []
    for session_id in ("session-B", "nobody"):
        surface = both.surface("A")
        both.agents["A"].send(surface, SurfaceTransferRequest(session_id, True))
        (event,) = both.exchange()["A"]
        assert isinstance(event, ObjectMessage)
        assert isinstance(event.payload, DisplayErrorEvent)
        assert (event.payload.object_id, event.payload.code) == (surface, 9)
        told.append(event.payload.message)
        assert both.agents["A"].objects.surface(surface).ownership == "owned"
    assert told[0] == told[1]


def test_agent_without_room_takes_no_surface() -> None:
    both = TwoAgents()
    for _ in range(LIMITS.max_surfaces):
        both.surface("B")
    surface = both.surface("A")
    both.agents["A"].send(surface, SurfaceTransferRequest("session-B", True))
    (event,) = both.exchange()["A"]
    assert isinstance(event, ObjectMessage)
    assert isinstance(event.payload, DisplayErrorEvent)
    assert event.payload.code == 9


def offered() -> tuple[TwoAgents, int, int]:
    """Two agents, a surface of A that is offered to B, and what B calls it."""
    both = TwoAgents()
    surface = both.surface("A")
    both.answers = False
    both.agents["A"].send(surface, SurfaceTransferRequest("session-B", True, "t1"))
    (come,) = both.exchange()["B"]
    assert isinstance(come, ObjectMessage)
    return both, surface, come.object_id


def errors(events: list[object]) -> list[int]:
    """Return the codes of the errors among events."""
    payloads = [one.payload for one in events if isinstance(one, ObjectMessage)]
    return [one.code for one in payloads if isinstance(one, DisplayErrorEvent)]


def test_surface_that_the_other_agent_destroys_stays_where_it_was() -> None:
    """It may be offered again. Spec: O27."""
    both, surface, new_id = offered()
    both.agents["B"].destroy(new_id)
    assert errors(both.exchange()["A"]) == [9]
    assert both.agents["A"].objects.surface(surface).ownership == "owned"
    both.answers = True
    both.agents["A"].send(surface, SurfaceTransferRequest("session-B", True, "t2"))
    both.exchange()
    assert [one.surface_id for one in both.handed] == [surface]


def test_offer_that_crosses_the_last_surface_of_the_other_agent_is_denied() -> None:
    """The renderer refuses the one, and the agent the other. Spec: O8, O18, O27."""
    both = TwoAgents()
    for _ in range(LIMITS.max_surfaces - 1):
        both.surface("B")
    surface = both.surface("A")
    both.agents["A"].send(surface, SurfaceTransferRequest("session-B", True))
    both.agents["B"].create_surface("last")
    got = both.exchange()
    assert (errors(got["A"]), errors(got["B"]), both.handed) == ([9], [4], [])
    assert both.agents["A"].objects.surface(surface).ownership == "owned"
    for end in (both.agents["B"], both.display.agents["B"]):
        assert len(end.objects.surfaces) == LIMITS.max_surfaces - 1


def test_other_agent_that_is_gone_before_it_answers_leaves_the_outcome_unknown() -> None:
    """Its ledger may have the surface. One that was offered nothing changes nothing. Spec: O27."""
    both, surface, _ = offered()
    both.display.detach("C")
    assert both.exchange() == {"A": [], "B": []}
    both.display.detach("B")
    del both.agents["B"]
    assert errors(both.exchange()["A"]) == [17]
    assert both.agents["A"].objects.surface(surface).ownership == "owned"


def test_answer_for_an_agent_that_is_gone_or_has_closed_the_surface_hands_nothing_over() -> None:
    """What was closed meanwhile is closed for its new owner too."""
    both, _, new_id = offered()
    both.display.detach("A")
    del both.agents["A"]
    both.agents["B"].get_toplevel(new_id)
    both.exchange()
    assert both.handed == []
    both, surface, new_id = offered()
    both.agents["A"].destroy(surface)
    both.exchange()
    both.agents["B"].get_toplevel(new_id)
    (event,) = both.exchange()["B"]
    assert isinstance(event, ObjectMessage)
    assert event.op == "closed"
    assert both.handed == []
    both, surface, new_id = offered()
    both.agents["A"].destroy(surface)
    both.exchange()
    both.agents["B"].destroy(new_id)
    assert both.exchange() == {"A": [], "B": []}


def test_input_serial_of_one_agent_opens_nothing_for_another() -> None:
    both = TwoAgents()
    below = {name: both.surface(name) for name in "AB"}
    serial = both.display.agents["A"].input(below["A"], "text", {"text": "x"}, 0.0)
    both.exchange()
    above = both.agents["B"].create_surface()
    both.agents["B"].get_popup(above, below["B"], serial)
    (event,) = both.exchange()["B"]
    assert isinstance(event, ObjectMessage)
    assert isinstance(event.payload, DisplayErrorEvent)
    assert event.payload.code == 3


def test_detached_agent_takes_and_gives_nothing_any_more() -> None:
    both = TwoAgents()
    surface = both.surface("A")
    both.display.detach("B")
    del both.agents["B"]
    both.agents["A"].send(surface, SurfaceTransferRequest("session-B", True))
    (event,) = both.exchange()["A"]
    assert isinstance(event, ObjectMessage)
    assert isinstance(event.payload, DisplayErrorEvent)


class Operations:
    """What two agents and a user do at random."""

    def __init__(self, both: TwoAgents, random: Random) -> None:
        self.both, self.random = both, random

    def do(self) -> None:
        name = self.random.choice("AB")
        mine = list(self.both.agents[name].objects.surfaces)
        todo = self.random.choice(
            [self.show, self.use, self.focus, self.hand_over, self.destroy, self.guess, self.patch]
        )
        if not mine or (len(mine) < LIMITS.max_surfaces and self.random.random() < 0.1):
            self.both.surface(name)
        else:
            todo(name, self.random.choice(mine))
        self.both.now_s += self.random.random()
        self.both.exchange()
        for each, renderer in self.both.display.agents.items():
            for surface in renderer.objects.surfaces:
                renderer.displayed(surface)
            assert self.both.shown(each) <= self.both.known[each]
        self.both.exchange()

    def show(self, name: str, surface: int) -> None:
        self.both.show(name, surface)

    def use(self, name: str, surface: int) -> None:
        said = self.both.secret(name)
        self.both.display.agents[name].input(surface, "text", {"text": said}, self.both.now_s)
        got = self.both.exchange()
        assert got["B" if name == "A" else "A"] == []
        (event,) = got[name]
        assert isinstance(event, ObjectMessage)
        assert isinstance(event.payload, InputInputEvent)
        agent = self.both.agents[name]
        agent.send(agent.bound["ArpInput"], InputAckRequest(event.payload.serial))

    def focus(self, name: str, surface: int) -> None:
        self.both.display.agents[name].focus(surface)
        assert self.both.exchange()["B" if name == "A" else "A"] == []

    def hand_over(self, name: str, surface: int) -> None:
        other = "B" if name == "A" else "A"
        retains = self.random.random() < 0.5
        request = SurfaceTransferRequest(f"session-{other}", retains)
        self.both.agents[name].send(surface, request)

    def destroy(self, name: str, surface: int) -> None:
        if self.random.random() < 0.2:
            self.both.agents[name].destroy(surface)

    def guess(self, name: str, _: int) -> None:
        """Use an id that is the other agent's, or nobody's: here it is nothing."""
        other = "B" if name == "A" else "A"
        agent, renderer = self.both.agents[name], self.both.display.agents[name]
        number = self.random.choice([*self.both.agents[other].objects.entries, 4000])
        if number in agent.objects.entries or number in agent.objects.dead:
            return
        with pytest.raises(ArpError):
            agent.send(number, SurfaceCommitRequest())
        before = self.both.shown(other)
        agent._sent_no = renderer._received_no + 1
        raw = {"v": 1, "id": number, "op": "commit", "seq": agent._sent_no, "payload": {}}
        events = self.both.display.receive(name, json.dumps(raw), self.both.now_s)
        assert all(isinstance(one, RefusedMessage) for one in events)
        assert self.both.shown(other) == before

    def patch(self, name: str, surface: int) -> None:
        agent = self.both.agents[name]
        ops: list[PatchOp] = [Update("c", "props.content", self.both.secret(name))]
        agent.send(surface, SurfacePatchRequest(ops))
        agent.send(surface, SurfaceCommitRequest())


def test_ten_thousand_operations_leak_nothing_between_two_agents() -> None:
    """Ids, content and input of one agent never reach the other, unless they are handed over.

    Spec: O25.
    """
    both = TwoAgents()
    operations = Operations(both, Random(17))
    for _ in range(10_000):
        # More than 1,000 refusals end a connection; those here are what is tested.
        for renderer in both.display.agents.values():
            renderer._rejected = 0
        operations.do()
    assert len(both.handed) > 300
    for name, agent in both.agents.items():
        # Nothing grows with what has happened: ids are used again, and what ended is forgotten.
        agent.sync()
        both.exchange()
        renderer = both.display.agents[name]
        assert agent.life == renderer.life == "open"
        assert renderer.objects.surfaces.keys() == agent.objects.surfaces.keys()
        assert max(key for key in agent.objects.entries if key < 0x80000000) < 100
        assert not agent.objects.dead
        assert len(agent.objects.entries) == len(renderer.objects.entries) < 30
        assert len(renderer._contents) <= LIMITS.max_surfaces
