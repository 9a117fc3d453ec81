"""One commit as a renderer of some profile gets it: what it shows natively goes through.

Source: protocol.md 3, "a component that has been degraded stays patchable". That every screen ends
up right is proven by random programs in `tests/session`; here is what each kind is told.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from arp.protocol.catalog import VERSIONS
from arp.protocol.components import Component
from arp.protocol.limits import Limits, RendererLimits
from arp.protocol.mark import Mark, OutputAnchor
from arp.protocol.messages import RendererCapabilities
from arp.protocol.patch import Append, Insert, PatchOp, Remove, Reorder, Replace, Update
from arp.protocol.tree import Tree
from arp.session.recording.projection import At
from arp.session.recording.recorded import AppliedCommit, RecordedFact
from arp.surface.change import Change, PatchChange, RenderChange
from arp.surface.surface import Surface
from arp.view.profile import Profile, profile_of
from arp.view.shown_roots import ShownRoots
from arp.view.translate import translated


def profile(*components: str, features: tuple[str, ...] = ("patch-append",)) -> Profile:
    return profile_of(RendererCapabilities(list(components), list(features)))


FULL = profile(*VERSIONS)
NO_APPEND = profile(*VERSIONS, features=())
TEXT = profile("text")
GROUPS = profile("text", "group")


def text(component_id: str, content: str = "x") -> Component:
    return Component(component_id, "text", {"content": content})


def confirm(component_id: str, title: str = "Sure?") -> Component:
    return Component(component_id, "confirm", {"title": title})


def table(component_id: str, *rows: list[Any]) -> Component:
    return Component(component_id, "table", {"headers": ["h"], "rows": list(rows)})


def plain(component_id: str) -> dict[str, Any]:
    return {"id": component_id, "type": "text", "props": {"content": "x"}}


def odd(component_id: str) -> dict[str, Any]:
    """A child that only a full renderer shows natively."""
    return {"id": component_id, "type": "code-block", "props": {"code": component_id}}


def group(component_id: str, *children: Any) -> Component:
    return Component(component_id, "group", {"children": list(children)})


def as_text(component_id: str, content: str) -> Component:
    return Component(component_id, "text", {"content": content, "format": "plain"})


class Stage:
    """A surface on which something stands, and the next commit as a profile is told it."""

    def __init__(self, *shown: Component) -> None:
        self.on = Surface(Tree(), Limits())
        self.seq = 0
        self.commit("t1", RenderChange(list(shown)))

    def commit(self, turn: str, *changes: Change) -> list[Change]:
        self.seq += 1
        return self.on.commit(changes, turn, self.seq)

    def told(self, wanted: Profile, *changes: Change, turn: str = "t1") -> Any:
        shown = ShownRoots(wanted, self.on.tree)
        applied = self.commit(turn, *changes)
        fact = RecordedFact("artifact.changed", {}, {})
        commit = AppliedCommit(At("s", self.seq), fact, "main", turn, self.on.tree, applied, False)
        out = translated(commit, wanted, shown)
        return "the same" if out is applied else out


def patch(*ops: PatchOp) -> PatchChange:
    return PatchChange(list(ops))


# -- what goes through as it is --------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        RenderChange([text("a"), group("h", odd("o"))]),
        patch(Update("a", "props.content", "y"), Append("a", "props.content", "z")),
        patch(Insert(table("n", [1])), Insert(text("m"), None, "g")),
        patch(Remove("a"), Replace("g", confirm("g"))),
        patch(Reorder("g", None)),
        patch(Update("g", "props.children", [odd("o")])),
    ],
)
def test_renderer_that_shows_all_is_told_the_commit_as_it_is(change: Change) -> None:
    assert Stage(text("a"), group("g", plain("b"))).told(FULL, change) == "the same"


def test_renderer_is_told_as_it_is_what_it_shows_of_a_surface_with_more() -> None:
    stage = Stage(text("a"), table("t", [1]))
    assert stage.told(TEXT, patch(Update("a", "props.content", "y"))) == "the same"


# -- append ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "told"),
    [
        (Append("a", "props.content", "y"), Update("a", "props.content", "xy")),
        (Append("t", "props.rows", [[3]]), Update("t", "props.rows", [[1], [2], [3]])),
        (Append("t", "props.rows.1", [9]), Update("t", "props.rows.1", [2, 9])),
    ],
)
def test_append_is_an_update_for_who_does_not_know_it(op: Append, told: Update) -> None:
    """protocol.md 4: feature `patch-append`; sent as `update` to others."""
    assert Stage(text("a"), table("t", [1], [2])).told(NO_APPEND, patch(op)) == [patch(told)]


def test_append_behind_an_update_of_the_same_is_told_whole() -> None:
    """An update that is made of an append has the value after the commit already."""
    stage = Stage(text("a"))
    ops = patch(Append("a", "props.content", "y"), Update("a", "props.format", "plain"))
    assert stage.told(NO_APPEND, ops) == [RenderChange([as_text("a", "xy")])]


# -- what stands as something else -----------------------------------------------------------------


def test_what_is_shown_goes_out_degraded_with_its_tool() -> None:
    told = Stage().told(TEXT, RenderChange([confirm("c"), text("a")], "query"))
    ((shown, a),) = [change.components for change in told]
    assert (shown.id, shown.type) == ("c", "text")
    assert "Sure?" in shown.props["content"]
    assert (a, told[0].tool_name) == (text("a"), "query")


def test_change_of_it_tells_it_anew_in_its_place() -> None:
    stage = Stage(confirm("c", "Old?"), text("a"))
    (told,) = stage.told(TEXT, patch(Update("c", "props.title", "New?")))
    (shown,) = told.components
    assert shown.id == "c"
    assert "New?" in shown.props["content"]
    assert "Old?" not in shown.props["content"]


def test_ops_on_others_pass_beside_it() -> None:
    stage = Stage(confirm("c"), text("a"))
    ops, again = stage.told(
        TEXT, patch(Update("a", "props.content", "y"), Update("c", "props.title", "New?"))
    )
    assert ops == patch(Update("a", "props.content", "y"))
    assert [shown.id for shown in again.components] == ["c"]


def test_table_of_which_few_rows_are_shown_is_told_anew() -> None:
    """A path into the rows means nothing where they are cut."""
    few = profile_of(
        RendererCapabilities(["text", "table"], ["patch-append"], RendererLimits(max_table_rows=1))
    )
    stage = Stage(table("t", [1], [2]))
    (told,) = stage.told(few, patch(Append("t", "props.rows", [[3]])))
    (shown,) = told.components
    assert (shown.id, shown.type, shown.props["rows"][0]) == ("t", "table", [1])


def test_what_goes_away_is_removed() -> None:
    stage = Stage(text("a"), confirm("c"))
    assert stage.told(TEXT, patch(Remove("c"))) == [patch(Remove("c"))]


def test_what_is_replaced_under_another_id_is_replaced_where_it_stood() -> None:
    """So that what stands behind it, a tool say, stays behind the new one."""
    stage = Stage(confirm("c"), text("a"))
    assert stage.told(TEXT, patch(Replace("c", confirm("m")), Replace("m", text("n")))) == [
        patch(Replace("c", text("n")))
    ]


@pytest.mark.parametrize(
    "ops",
    [
        [Reorder("c", "a"), Replace("c", confirm("n"))],
        [Replace("c", confirm("n")), Reorder("n", "a")],
        [Replace("c", confirm("m")), Reorder("m", "a"), Replace("m", confirm("n"))],
        [Replace("c", text("n")), Remove("n"), Insert(confirm("n"), "a")],
    ],
)
def test_replacement_that_is_not_in_the_position_of_the_old_root_is_inserted(
    ops: list[PatchOp],
) -> None:
    """The renderer has the old root before `a`; the new one belongs after `a`."""
    stage = Stage(confirm("c"), text("a"), text("b"))
    assert stage.told(TEXT, PatchChange(ops)) == [
        patch(Remove("c")),
        patch(Insert(as_text("n", "Sure?\nReply yes or no."), "a")),
    ]


def test_root_that_is_replaced_under_its_own_id_first_is_replaced_in_its_position() -> None:
    stage = Stage(confirm("c"), text("a"))
    ops = patch(Replace("c", confirm("c", "Old?")), Replace("c", text("n")))
    assert stage.told(TEXT, ops) == [patch(Replace("c", text("n")))]


def test_id_of_a_removed_root_that_comes_in_the_place_of_another_is_removed_first() -> None:
    """An id stands once on a surface at any moment (protocol.md 3, "ids are unique")."""
    stage = Stage(table("f"), text("b"), confirm("j"))
    ops: list[PatchOp] = [Remove("j"), Replace("f", confirm("j", "New?"))]
    (told,) = stage.told(TEXT, PatchChange(ops))
    removed, replaced = told.ops
    assert removed == Remove("j")
    assert (replaced.target, replaced.component.id) == ("f", "j")


def test_pieces_are_replaced_by_pieces_where_they_stood() -> None:
    stage = Stage(group("g", plain("c"), plain("d")), text("a"))
    replace = Replace("g", group("h", plain("e"), plain("f")))
    assert stage.told(TEXT, patch(replace)) == [
        patch(Replace("d", text("e")), Insert(text("f"), "e"), Remove("c"))
    ]


# -- where it stands -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (UNSET, RenderChange([as_text("n", "Sure?")])),
        (None, patch(Insert(as_text("n", "Sure?"), None))),
        ("a", patch(Insert(as_text("n", "Sure?"), "a"))),
        ("b", RenderChange([as_text("n", "Sure?")])),
    ],
)
def test_new_one_goes_where_it_belongs(after: Any, told: Change) -> None:
    custom = Component("n", "x-acme-dial", {}, 1, as_text("", "Sure?"))
    assert Stage(text("a"), text("b")).told(TEXT, patch(Insert(custom, after))) == [told]


def test_new_ones_between_stand_one_behind_the_other() -> None:
    stage = Stage(text("a"), text("b"))
    insert = Insert(group("g", plain("c"), plain("d")), "a")
    assert stage.told(TEXT, patch(insert)) == [
        patch(Insert(text("c"), "a"), Insert(text("d"), "c"))
    ]


def test_reordered_one_leaves_its_place_and_comes_back_elsewhere() -> None:
    stage = Stage(text("a"), group("g", plain("c"), plain("d")), text("b"))
    assert stage.told(TEXT, patch(Reorder("g", None))) == [
        patch(Remove("c"), Remove("d")),
        patch(Insert(text("c"), None), Insert(text("d"), "c")),
    ]


def test_one_of_an_earlier_turn_stays_there() -> None:
    stage = Stage(text("a"), text("b"))
    insert = Insert(confirm("c"), "b")
    (told,) = stage.told(TEXT, patch(insert), turn="t2")
    (op,) = told.ops
    assert (op.component.id, op.after, op.parent) == ("c", "b", None)


def test_first_place_of_an_earlier_turn_cannot_be_told() -> None:
    """An insert at the first place names no turn: the renderer would take its own."""
    stage = Stage(text("b"), group("g", plain("c")))
    stage.commit("t2", RenderChange([text("z")]))
    assert stage.told(TEXT, patch(Reorder("g", None)), turn="t2") is None


# -- positions of tool calls -----------------------------------------------------------------------


def with_tool(stage: Stage, root: str) -> Stage:
    """Add a tool call after a root component."""
    stage.on.tree.mark(Mark("tool", 0, OutputAnchor(root)), "t1")
    return stage


def test_root_that_is_inserted_again_is_removed_before_the_roots_that_are_gone() -> None:
    """The mark of `a` goes to the root before it. That must not be `c`, which moves."""
    stage = with_tool(Stage(confirm("c"), text("a")), "a")
    assert stage.told(TEXT, patch(Reorder("c", "a"), Remove("a"))) == [
        patch(Remove("c"), Remove("a")),
        RenderChange([as_text("c", "Sure?\nReply yes or no.")]),
    ]


def test_root_that_is_moved_and_removed_leaves_its_tool_at_its_new_position() -> None:
    """A renderer has it in the old position: only a snapshot shows the tool after `a`."""
    ops = patch(Reorder("c", "a"), Remove("c"))
    stage = with_tool(Stage(confirm("c"), text("a"), text("b")), "c")
    assert stage.told(TEXT, ops) is None
    assert Stage(confirm("c"), text("a"), text("b")).told(TEXT, ops) == [patch(Remove("c"))]


def test_tool_of_a_root_that_is_removed_before_the_surface_is_replaced() -> None:
    """Its mark has gone to `a`, which is shown again. A renderer removes both at once."""
    stage = with_tool(Stage(text("a"), confirm("c")), "c")
    replaced = RenderChange([text("a")], replace=True)
    assert stage.told(TEXT, patch(Remove("c")), replaced) is None


# -- layouts ---------------------------------------------------------------------------------------


def test_op_in_a_group_that_is_known_passes_with_its_component_degraded() -> None:
    stage = Stage(group("g", plain("a")))
    insert = Insert(Component("o", "code-block", {"code": "pass"}), "a")
    (told,) = stage.told(GROUPS, patch(insert))
    (op,) = told.ops
    assert (op.component.id, op.component.type, op.after) == ("o", "text", "a")
    assert "pass" in op.component.props["content"]


@pytest.mark.parametrize(
    "op",
    [
        Remove("a"),
        Reorder("b", None),
        Update("a", "props.content", "y"),
        Append("a", "props.content", "y"),
        Insert(text("n"), None, "g"),
        Insert(text("n"), "o"),
    ],
)
def test_ops_pass_in_a_group_that_is_known_whatever_else_is_in_it(op: PatchOp) -> None:
    """Its list of children is the same, though one of them stands as something else."""
    stage = Stage(group("g", plain("a"), odd("o"), plain("b")), confirm("c"))
    ops, again = stage.told(GROUPS, patch(op, Update("c", "props.title", "New?")))
    assert ops == patch(op)
    assert [shown.id for shown in again.components] == ["c"]


@pytest.mark.parametrize(
    "ops",
    [
        [Update("o", "props.code", "new")],
        [Replace("a", Component("a", "code-block", {"code": "new"}))],
        [Update("g", "props.children", [odd("new")])],
        [Remove("a"), Insert(text("a"), "o"), Update("o", "props.code", "new")],
        [Reorder("a", "b"), Remove("b"), Update("o", "props.code", "new")],
    ],
)
def test_op_that_cannot_pass_tells_the_whole_group_anew(ops: list[PatchOp]) -> None:
    """Something in it stands as something else, or came back, or named what is gone."""
    stage = Stage(group("g", plain("a"), odd("o"), plain("b")))
    (told,) = stage.told(GROUPS, PatchChange(ops))
    assert [shown.id for shown in told.components] == ["g"]


def test_op_that_names_what_is_gone_does_not_pass() -> None:
    """What it meant is known to nobody any more once the ops are told apart."""
    stage = Stage(group("g", plain("a"), odd("o"), plain("b")), confirm("c"))
    ops = patch(Reorder("a", "b"), Remove("b"), Update("c", "props.title", "New?"))
    (told,) = stage.told(GROUPS, ops)
    assert [shown.id for shown in told.components] == ["g", "c"]


@pytest.mark.parametrize("after", [UNSET, None])
def test_child_of_a_group_that_stands_in_parts_comes_as_a_part(after: Any) -> None:
    stage = Stage(group("g", plain("a")), text("z"))
    removed, put = stage.told(TEXT, patch(Insert(text("n"), after, "g")))
    assert removed == patch(Remove("a"))
    ids = ["n", "a"] if after is None else ["a", "n"]
    assert [(op.component.id, op.after) for op in put.ops] == [(ids[0], None), (ids[1], ids[0])]


def test_children_that_are_set_whole_are_looked_at() -> None:
    """What stood there before was all native; what stands there now is not."""
    stage = Stage(group("g", plain("a")))
    (told,) = stage.told(GROUPS, patch(Update("g", "props.children", [odd("o")])))
    ((child,),) = [shown.props["children"] for shown in told.components]
    assert (child["id"], child["type"]) == ("o", "text")


def test_group_that_stands_in_parts_is_told_anew_in_parts() -> None:
    stage = Stage(group("g", plain("a"), plain("b")), text("z"))
    assert stage.told(TEXT, patch(Remove("a"))) == [
        patch(Remove("a"), Remove("b")),
        patch(Insert(text("b"), None)),
    ]


def test_part_that_keeps_its_place_is_told_there() -> None:
    stage = Stage(group("g", plain("a"), plain("b")), text("z"))
    assert stage.told(TEXT, patch(Update("a", "props.content", "y"))) == [
        RenderChange([text("a", "y"), text("b")])
    ]


def test_root_that_moved_into_a_group_is_removed_where_it_stood() -> None:
    stage = Stage(text("a"), group("g"), confirm("c"))
    told = stage.told(
        GROUPS,
        patch(Remove("a"), Insert(text("a"), None, "g"), Update("c", "props.title", "New?")),
    )
    assert told[0] == patch(Remove("g"), Remove("c"), Remove("a"))
    assert [shown.id for shown in told[1].components] == ["g", "c"]


def test_roots_are_all_put_back_when_an_id_has_wandered() -> None:
    """Order matters then: nothing may come in before it has left elsewhere."""
    stage = Stage(group("g", plain("a")), group("h", odd("o")))
    told = stage.told(
        GROUPS,
        patch(Remove("a"), Insert(text("a"), None, "h"), Update("o", "props.code", "new")),
    )
    assert told[0] == patch(Remove("g"), Remove("h"))
    (shown,) = told[1:]
    assert [(root.id, [c["id"] for c in root.props["children"]]) for root in shown.components] == [
        ("g", []),
        ("h", ["a", "o"]),
    ]


# -- whole surfaces --------------------------------------------------------------------------------


def test_replaced_surface_is_told_whole() -> None:
    stage = Stage(group("g", plain("a")))
    told = stage.told(
        TEXT, RenderChange([confirm("c")], "q", replace=True), RenderChange([text("b")])
    )
    assert [(change.replace, change.tool_name) for change in told] == [(True, "q"), (False, None)]
    assert [shown.id for change in told for shown in change.components] == ["c", "b"]


def test_surface_may_be_replaced_by_nothing() -> None:
    stage = Stage(confirm("c"))
    change = RenderChange([], None, replace=True)
    assert stage.told(TEXT, change) == [change]


def test_components_of_one_tool_are_told_together() -> None:
    told = Stage().told(
        TEXT,
        RenderChange([confirm("a"), text("b")], "first"),
        RenderChange([text("c")], "second"),
        RenderChange([text("d")], "second"),
    )
    assert [(c.tool_name, [shown.id for shown in c.components]) for c in told] == [
        ("first", ["a", "b"]),
        ("second", ["c", "d"]),
    ]
