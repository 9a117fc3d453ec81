"""Cases about version, status and capabilities, and about models, modes and providers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from arp.conformance.cases import CaseFailed, CaseUnreachable, expect, expect_same
from arp.conformance.runtime.case import DENY, CallerSession, CaseRun, Cases, refused
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import FailedPrecondition, InvalidArgument, Unimplemented
from arp.runtime.contract.services import (
    CAPABILITIES,
    CommandManager,
    MemoryManager,
    ModelManager,
    ModeManager,
    ProviderManager,
    SessionUtilityManager,
    SkillManager,
    is_capability_name,
)

CASES = Cases()

SERVICES: dict[str, type] = {
    known.name: known.service for known in CAPABILITIES if known.service is not None
}
"""The optional services, by the name of their capability."""

FIELDS: dict[str, object] = {
    "session_id": "0b0f9d1c-6c0e-4d54-9a55-3f1f6d1f5c11",
    "instructions": "Answer briefly.",
    "mcp_servers": (ari.McpServer("none", "/bin/false"),),
}
"""A value for each field of `create_session` that has a capability."""


@CASES.add(1)
async def version(run: CaseRun) -> None:
    """A runtime returns its name and the version of the interface."""
    response = await run.runtime.version(ari.VersionRequest())
    expect(response.runtime_name, "the runtime has no name")
    expect_same(response.api_version, ari.API_VERSION, "api_version")


@CASES.add(1)
async def version_refused(run: CaseRun) -> None:
    """A request for another version of the interface is refused."""
    with refused(InvalidArgument, names="api_version"):
        await run.runtime.version(ari.VersionRequest("v0"))


@CASES.add(1)
async def status(run: CaseRun) -> None:
    """A runtime that can create sessions is ready, and lists each capability once."""
    await run.session()
    response = await run.runtime.status(ari.StatusRequest(verbose=True))
    expect(response.ready, f"not ready: {response.message}")
    expect(response.healthy or response.message, "not healthy, and the message is empty")
    names = [one.name for one in response.capabilities]
    expect_same(len(names), len(set(names)), f"names of capabilities {names}")


@CASES.add(1)
async def capabilities_and_methods(run: CaseRun) -> None:
    """The capabilities name each optional service that the runtime has, and no other."""
    response = await run.runtime.status(ari.StatusRequest())
    listed = {one.name for one in response.capabilities} & SERVICES.keys()
    has = {name for name, service in SERVICES.items() if isinstance(run.runtime, service)}
    expect_same(sorted(listed), sorted(has), "capabilities of optional services")


@CASES.add(1)
async def capability_names(run: CaseRun) -> None:
    """Each capability has a shared name, or a name of the form VENDOR/NAME."""
    response = await run.runtime.status(ari.StatusRequest())
    names = [one.name for one in response.capabilities]
    invalid = [name for name in names if not is_capability_name(name)]
    expect_same(invalid, [], "names that are neither shared nor VENDOR/NAME")


@CASES.add(1)
async def capabilities_stay(run: CaseRun) -> None:
    """The capabilities are the same before the first session and after it."""
    before = (await run.runtime.status(ari.StatusRequest())).capabilities
    session = await run.session()
    await session.turn(run.text_of("hello"))
    after = (await run.runtime.status(ari.StatusRequest())).capabilities
    expect_same(after, before, "capabilities")


async def _enabled(run: CaseRun) -> set[str]:
    capabilities = (await run.runtime.status(ari.StatusRequest())).capabilities
    return {one.name for one in capabilities if one.enabled}


@CASES.add(1)
async def fields_and_capabilities(run: CaseRun) -> None:
    """A field of a new session is accepted if its capability is enabled, otherwise refused."""
    session = await run.session()
    enabled = await _enabled(run)
    await session.close()
    accepted = {name: value for name, value in FIELDS.items() if name in enabled}
    try:
        session = await run.session(**accepted)
    except Unimplemented as missing:
        raise CaseFailed(f"one of {sorted(accepted)} is enabled: {missing.message}") from missing
    await session.echo("with them")
    for name in FIELDS.keys() - accepted.keys():
        with refused(Unimplemented, names=name):
            await run.session(**{name: FIELDS[name]})


@CASES.add(1)
async def methods_and_capabilities(run: CaseRun) -> None:
    """No method of an enabled capability is ever answered with `Unimplemented`."""
    session = await run.session()
    await session.echo("first")
    enabled = await _enabled(run)
    for name, use in USES.items():
        if name in enabled:
            try:
                await use(run.runtime, session)
            except Unimplemented as missing:
                raise CaseFailed(f"{name} is enabled: {missing.message}") from missing
    if "delete_session" not in enabled:
        with refused(Unimplemented, names="delete_session"):
            await session.delete()


async def _switch_model(runtime: Any, session: CallerSession) -> None:
    await runtime.list_models(ari.ListModelsRequest(session.id))
    model = (await runtime.get_model(ari.GetModelRequest(session.id))).model
    if model:
        await runtime.set_model(ari.SetModelRequest(session.id, model))


async def _switch_mode(runtime: Any, session: CallerSession) -> None:
    await runtime.list_modes(ari.ListModesRequest(session.id))
    mode = (await runtime.get_mode(ari.GetModeRequest(session.id))).mode
    if mode:
        await runtime.set_mode(ari.SetModeRequest(session.id, mode))


async def _switch_provider(runtime: Any, session: CallerSession) -> None:
    listed = await runtime.list_providers(ari.ListProvidersRequest(session.id))
    await runtime.get_active_provider(ari.GetActiveProviderRequest(session.id))
    for choice in listed.providers[:1]:
        await runtime.set_active_provider(ari.SetActiveProviderRequest(session.id, choice.id))


async def _compact(runtime: Any, session: CallerSession) -> None:
    await runtime.compact_session(ari.CompactSessionRequest(session.id))
    await session.until_done()


async def _cancel(runtime: Any, session: CallerSession) -> None:
    await session.send(session.run.text_of("slow"))
    await session.cancel()
    await session.until_done()


async def _resume(runtime: Any, session: CallerSession) -> None:
    await session.close()
    await session.run.resumed(session.id)


USES: dict[str, Callable[[Any, CallerSession], Awaitable[object]]] = {
    "list_sessions": lambda runtime, _: runtime.list_sessions(ari.ListSessionsRequest()),
    "history": lambda runtime, session: runtime.get_session_history(
        ari.GetSessionHistoryRequest(session.id)
    ),
    "model": _switch_model,
    "mode": _switch_mode,
    "provider": _switch_provider,
    "memory": lambda runtime, session: runtime.list_memory_files(ari.ListItemsRequest(session.id)),
    "skills": lambda runtime, session: runtime.list_skills(ari.ListItemsRequest(session.id)),
    "commands": lambda runtime, session: runtime.list_commands(ari.ListItemsRequest(session.id)),
    "compaction": _compact,
    "cancel_turn": _cancel,
    "resume_session": _resume,
    "delete_session": lambda _, session: session.delete(),
}
"""Functions that call the methods of a capability. The last ones close or delete the session."""


@CASES.add(1)
async def requests_and_capabilities(run: CaseRun) -> None:
    """A permission request offers only options that have an enabled capability."""
    session = await run.session()
    enabled = await _enabled(run)
    await session.send(run.run_text("touch asked"))
    request = await session.next_request()
    await session.answer(request, DENY)
    await session.until_done()
    takes = {
        "permission_rules": bool(request.rules),
        "updated_input": request.takes_updated_input,
        "deny_message": request.takes_message,
    }
    undeclared = {name for name, taken in takes.items() if taken} - enabled
    expect_same(undeclared, set(), "options of the request whose capability is not enabled")


@CASES.add(1)
async def asks_as_it_says(run: CaseRun) -> None:
    """A runtime with enforced or advisory permissions asks before a command."""
    response = await run.runtime.status(ari.StatusRequest())
    if response.permission == "none":
        raise CaseUnreachable("its permissions are `none`")
    session = await run.session()
    await session.send(run.run_text("touch asked"))
    request = await session.next_request()
    await session.answer(request, ari.PermissionResponse("deny"))
    await session.until_done()


@CASES.add(3)
async def model_switch(run: CaseRun) -> None:
    """The model of a session can be changed, and the next turn uses it."""
    models = run.service(ModelManager)
    session = await run.session()
    await session.echo("with the first")
    if not run.under_test.other_model:
        raise CaseUnreachable("there is no other model")
    request = ari.SetModelRequest(session.id, run.under_test.other_model)
    taken = (await models.set_model(request)).model
    expect_same((await models.get_model(ari.GetModelRequest(session.id))).model, taken, "model")
    await session.echo("with the other")
    expect_same((await session.value()).model, taken, "model of the session")


@CASES.add(3)
async def models_listed(run: CaseRun) -> None:
    """The available models are listed, each once."""
    models = run.service(ModelManager)
    session = await run.session()
    listed = (await models.list_models(ari.ListModelsRequest(session.id))).models
    ids = [one.id for one in listed]
    expect(ids and len(ids) == len(set(ids)), f"models: {ids}")


@CASES.add(3)
async def unknown_model(run: CaseRun) -> None:
    """A refused model changes nothing, and an empty name is refused."""
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
    """Every mode that asks can be selected."""
    modes = run.service(ModeManager)
    session = await run.session()
    listed = (await modes.list_modes(ari.ListModesRequest(session.id))).modes
    expect(any(mode.asks for mode in listed), f"no mode asks: {listed}")
    for mode in listed:
        if mode.asks:
            taken = await modes.set_mode(ari.SetModeRequest(session.id, mode.id))
            expect_same(taken.mode, mode.id, "mode that was set")
            now = await modes.get_mode(ari.GetModeRequest(session.id))
            expect_same(now.mode, mode.id, "mode")
    await session.echo("in another mode")


@CASES.add(3)
async def unknown_mode(run: CaseRun) -> None:
    """An unknown or empty mode is refused and changes nothing."""
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
    """Creating a session in an unknown mode is refused."""
    run.service(ModeManager)
    with refused(InvalidArgument, names="mode"):
        await run.session(mode="no-such-mode")


@CASES.add(3)
async def provider(run: CaseRun) -> None:
    """The active provider is in the list, and can be selected."""
    providers = run.service(ProviderManager)
    session = await run.session()
    listed = await providers.list_providers(ari.ListProvidersRequest(session.id))
    if not listed.providers:
        raise CaseUnreachable("no provider is configured")
    active = await providers.get_active_provider(ari.GetActiveProviderRequest(session.id))
    wanted = active.provider or listed.providers[0].id
    expect(wanted in [one.id for one in listed.providers], f"{wanted} is not listed")
    request = ari.SetActiveProviderRequest(session.id, wanted)
    taken = (await providers.set_active_provider(request)).provider
    expect_same(taken, wanted, "provider that was set")
    await session.echo("from there")


@CASES.add(3)
async def unknown_provider(run: CaseRun) -> None:
    """An unknown provider is refused, and the session continues as before."""
    providers = run.service(ProviderManager)
    session = await run.session()
    request = ari.SetActiveProviderRequest(session.id, "no-such-provider")
    with refused(InvalidArgument):
        await providers.set_active_provider(request)
    await session.echo("as before")


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
    """Compaction runs as a turn, and the conversation continues after it."""
    utility = run.service(SessionUtilityManager)
    session = await run.session()
    await session.echo("long ago")
    begun = await utility.compact_session(ari.CompactSessionRequest(session.id))
    events = await session.until_done()
    expect_same((events[-1].type, events[-1].turn_id), ("result", begun.turn_id), "end")
    compacted = [event for event in events if event.lifecycle is ari.Lifecycle.COMPACTION]
    expect(compacted, f"no event reports the compaction: {[event.type for event in events]}")
    await session.echo("shorter")


@CASES.add(1)
async def runtime_closed(run: CaseRun) -> None:
    """A closed runtime can be closed again, and refuses every other call."""
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
