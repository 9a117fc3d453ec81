"""Cases about what a runtime is and what can be switched."""

from __future__ import annotations

from arp.conformance.case import CaseRun, Cases, expect, expect_same, refused
from arp.conformance.runtime_under_test import NotShown
from arp.runtime import types as ari
from arp.runtime.errors import FailedPrecondition, InvalidArgument
from arp.runtime.services import (
    CommandManager,
    HistoryManager,
    MemoryManager,
    ModelManager,
    ModeManager,
    ProviderManager,
    SessionUtilityManager,
    SkillManager,
)

CASES = Cases()

SERVICES: dict[str, type] = {
    "history": HistoryManager,
    "model": ModelManager,
    "mode": ModeManager,
    "provider": ProviderManager,
    "memory": MemoryManager,
    "skills": SkillManager,
    "commands": CommandManager,
    "compaction": SessionUtilityManager,
}
"""The optional services, by the capability that tells of them."""


@CASES.add(1)
async def version(run: CaseRun) -> None:
    """A runtime tells its name and the version of the interface."""
    response = await run.runtime.version(ari.VersionRequest())
    expect(response.runtime_name, "it has no name")
    expect_same(response.api_version, ari.API_VERSION, "api_version")


@CASES.add(1)
async def version_refused(run: CaseRun) -> None:
    """Another version of the interface is refused."""
    with refused(InvalidArgument, names="api_version"):
        await run.runtime.version(ari.VersionRequest("v0"))


@CASES.add(1)
async def status(run: CaseRun) -> None:
    """A runtime that can create sessions is ready, and names each capability once."""
    await run.session()
    response = await run.runtime.status(ari.StatusRequest(verbose=True))
    expect(response.ready, f"not ready: {response.message}")
    expect(response.healthy or response.message, "not healthy, and it does not say why")
    names = [one.name for one in response.capabilities]
    expect_same(len(names), len(set(names)), f"names of capabilities {names}")


@CASES.add(1)
async def capabilities_and_methods(run: CaseRun) -> None:
    """A capability is told of each optional service that the runtime has, and of no other."""
    response = await run.runtime.status(ari.StatusRequest())
    told = {one.name for one in response.capabilities} & SERVICES.keys()
    has = {name for name, service in SERVICES.items() if isinstance(run.runtime, service)}
    expect_same(sorted(told), sorted(has), "capabilities of optional services")


@CASES.add(1)
async def asks_as_it_says(run: CaseRun) -> None:
    """A runtime whose permissions are enforced or advisory asks before a command."""
    response = await run.runtime.status(ari.StatusRequest())
    if response.permission == "none":
        raise NotShown("its permissions are `none`")
    session = await run.session()
    await session.send(run.run_text("touch asked"))
    request = await session.asked()
    await session.answer(request, ari.PermissionResponse("deny"))
    await session.until_done()


@CASES.add(3)
async def model_switch(run: CaseRun) -> None:
    """The model is switched, and counts for the next turn."""
    models = run.service(ModelManager)
    session = await run.session()
    await session.says("with the first")
    if not run.under_test.other_model:
        raise NotShown("there is no other model")
    request = ari.SetModelRequest(session.id, run.under_test.other_model)
    taken = (await models.set_model(request)).model
    expect_same((await models.get_model(ari.GetModelRequest(session.id))).model, taken, "model")
    await session.says("with the other")
    expect_same((await session.value()).model, taken, "model of the session")


@CASES.add(3)
async def models_listed(run: CaseRun) -> None:
    """The models that can be taken are listed, each once."""
    models = run.service(ModelManager)
    session = await run.session()
    listed = (await models.list_models(ari.ListModelsRequest(session.id))).models
    ids = [one.id for one in listed]
    expect(ids and len(ids) == len(set(ids)), f"models: {ids}")


@CASES.add(3)
async def unknown_model(run: CaseRun) -> None:
    """A model that is refused changes nothing; no name is no model."""
    models = run.service(ModelManager)
    session = await run.session()
    get = ari.GetModelRequest(session.id)
    before = (await models.get_model(get)).model
    with refused(InvalidArgument, names="model"):
        await models.set_model(ari.SetModelRequest(session.id, ""))
    expect_same((await models.get_model(get)).model, before, "model")
    try:
        wanted = ari.SetModelRequest(session.id, "no-such-model")
        taken = (await models.set_model(wanted)).model
    except InvalidArgument:
        taken = before
    expect_same((await models.get_model(get)).model, taken, "model after an unknown one")


@CASES.add(3)
async def mode_switch(run: CaseRun) -> None:
    """Every mode that asks can be taken."""
    modes = run.service(ModeManager)
    session = await run.session()
    listed = (await modes.list_modes(ari.ListModesRequest(session.id))).modes
    expect(any(mode.asks for mode in listed), f"no mode asks: {listed}")
    for mode in listed:
        if mode.asks:
            taken = await modes.set_mode(ari.SetModeRequest(session.id, mode.id))
            expect_same(taken.mode, mode.id, "mode that was taken")
            now = await modes.get_mode(ari.GetModeRequest(session.id))
            expect_same(now.mode, mode.id, "mode")
    await session.says("in another mode")


@CASES.add(3)
async def unknown_mode(run: CaseRun) -> None:
    """An unknown mode is refused and changes nothing, also for a new session."""
    modes = run.service(ModeManager)
    session = await run.session()
    before = await modes.get_mode(ari.GetModeRequest(session.id))
    for mode in ("no-such-mode", ""):
        with refused(InvalidArgument, names="mode"):
            await modes.set_mode(ari.SetModeRequest(session.id, mode))
    after = await modes.get_mode(ari.GetModeRequest(session.id))
    expect_same(after, before, "mode")


@CASES.add(3)
async def new_session_in_unknown_mode(run: CaseRun) -> None:
    """A session is not created in a mode that does not exist."""
    run.service(ModeManager)
    with refused(InvalidArgument, names="mode"):
        await run.session(mode="no-such-mode")


@CASES.add(3)
async def provider(run: CaseRun) -> None:
    """The provider is one of those that are listed, and is taken again."""
    providers = run.service(ProviderManager)
    session = await run.session()
    listed = await providers.list_providers(ari.ListProvidersRequest(session.id))
    if not listed.providers:
        raise NotShown("no provider is configured")
    active = await providers.get_active_provider(ari.GetActiveProviderRequest(session.id))
    wanted = active.provider or listed.providers[0].id
    expect(wanted in [one.id for one in listed.providers], f"{wanted} is not listed")
    request = ari.SetActiveProviderRequest(session.id, wanted)
    taken = (await providers.set_active_provider(request)).provider
    expect_same(taken, wanted, "provider that was taken")
    await session.says("from there")


@CASES.add(3)
async def unknown_provider(run: CaseRun) -> None:
    """An unknown provider is refused."""
    providers = run.service(ProviderManager)
    session = await run.session()
    request = ari.SetActiveProviderRequest(session.id, "no-such-provider")
    with refused(InvalidArgument):
        await providers.set_active_provider(request)
    await session.says("as before")


@CASES.add(3)
async def commands(run: CaseRun) -> None:
    """The commands of a session are listed, without the slash."""
    lists = run.service(CommandManager)
    session = await run.session()
    items = (await lists.list_commands(ari.ListItemsRequest(session.id))).items
    names = [item.name for item in items]
    expect(names and not any(name.startswith("/") for name in names), f"commands: {names}")


@CASES.add(3)
async def skills(run: CaseRun) -> None:
    """The skills of a session are listed."""
    lists = run.service(SkillManager)
    session = await run.session()
    items = (await lists.list_skills(ari.ListItemsRequest(session.id))).items
    expect(all(item.name for item in items), f"skills: {items}")


@CASES.add(3)
async def memory(run: CaseRun) -> None:
    """The memory files of a session are listed with their paths."""
    lists = run.service(MemoryManager)
    session = await run.session()
    items = (await lists.list_memory_files(ari.ListItemsRequest(session.id))).items
    expect(all(item.path for item in items), f"memory files: {items}")


@CASES.add(3, ari.EventType.LIFECYCLE)
async def compaction(run: CaseRun) -> None:
    """The conversation is made shorter by a turn, and goes on."""
    utility = run.service(SessionUtilityManager)
    session = await run.session()
    await session.says("long ago")
    begun = await utility.compact_session(ari.CompactSessionRequest(session.id))
    events = await session.until_done()
    expect_same((events[-1].type, events[-1].turn_id), ("result", begun.turn_id), "end")
    compacted = [event for event in events if event.lifecycle is ari.Lifecycle.COMPACTION]
    expect(compacted, f"no event says so: {[event.type for event in events]}")
    await session.says("shorter")


@CASES.add(1)
async def runtime_closed(run: CaseRun) -> None:
    """A runtime is closed once more without harm, and refuses everything else."""
    session = await run.session()
    runtime = run.runtime
    await runtime.close(ari.CloseRequest())
    await runtime.close(ari.CloseRequest())
    with refused(FailedPrecondition):
        await runtime.version(ari.VersionRequest())
    with refused(FailedPrecondition):
        await run.session()
    with refused(FailedPrecondition):
        await session.send("hello")
    with refused(FailedPrecondition):
        await session.close()
