"""Commands of a runtime's session: the runtime's own, and those that switch its settings.

`/model`, `/mode` and `/provider` switch within the choices that the operator offers. They are
carried out here and not sent to the runtime. So is `/compact`, unless the runtime has a command of
that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from arp.protocol.messages import Command, CommandChoice
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import AriError
from arp.runtime.contract.services import (
    CommandManager,
    ModelManager,
    ModeManager,
    ProviderManager,
    SessionUtilityManager,
)
from arp.runtime.turns.linked_session import LinkedSession, RuntimeHandle
from arp.turn.foreign_names import FittingCommands, fitting_commands

if TYPE_CHECKING:
    from arp.turn.turn import Turn

SWITCHES = ("model", "mode", "provider")
"""Settings that users may switch; also the names of the commands."""
COMPACT = "compact"
"""Command that makes the conversation shorter."""
OWN_COMMANDS = (*SWITCHES, COMPACT)
"""Commands that are not sent to the runtime; `compact` is sent if the runtime has it itself."""
CHANGES_COMMANDS = frozenset((ari.Lifecycle.COMMANDS, ari.Lifecycle.MODEL, ari.Lifecycle.MODE))
"""Events that change the commands of a session, or the current choice of a command."""


class RuntimeOffers(msgspec.Struct, frozen=True):
    """Choices that users may switch to, by slash commands and menus."""

    models: tuple[str, ...] = ()
    """Models to offer; empty means the runtime's own list."""
    modes: tuple[str, ...] = ()
    """Modes to offer; empty means the modes that ask before they change anything."""
    providers: tuple[str, ...] = ()
    """Providers to offer; empty means none."""


class Switch(NamedTuple):
    """A setting that users may switch."""

    name: str
    """Name of the setting, one of `SWITCHES`."""
    choices: Sequence[ari.Choice]
    current: str

    def takes(self, wanted: str) -> bool:
        """Return whether a choice is allowed.

        If the runtime lists no models, any model is allowed. A mode or provider must always be
        listed.
        """
        is_any = self.name == "model" and not self.choices
        return is_any or wanted in {one.id for one in self.choices}


class SessionCommands:
    """Lists the commands of sessions, and carries out those that are not sent to the runtime.

    Args:
        runtime: Runtime of the sessions.
        offers: Choices that users may switch to.
    """

    def __init__(self, runtime: RuntimeHandle, offers: RuntimeOffers) -> None:
        self._runtime = runtime
        self._offers = offers

    async def listed(self, session_id: str) -> FittingCommands:
        """Return the commands of a session: the runtime's own, and those that switch settings.

        A command that people cannot type, or that exceeds the limits of a message, is left out with
        a warning.
        """
        commands = {one.name: one for one in await self._of_runtime(session_id)}
        if await self.offers_compact(session_id):
            commands[COMPACT] = Command(COMPACT, "Make the conversation shorter")
        for name, choices, current in await self.switches(session_id):
            offered = tuple(
                CommandChoice(one.id, one.label, one.description, one.id == current)
                for one in choices
            )
            commands[name] = Command(name, f"Switch the {name}", name, offered)
        return fitting_commands(commands.values())

    async def announce(self, turn: Turn, link: LinkedSession) -> None:
        """Send the commands of a session to its screens, if it has any."""
        found = await self.listed(link.session_id)
        if found.commands:
            turn.set_commands(found.commands)
        link.warn(turn.record, found.warnings)

    async def offers_compact(self, session_id: str) -> bool:
        """Return whether `/compact` is carried out here.

        That is so if the runtime can compact a session, but has no command of that name.
        """
        if not isinstance(self._runtime.service, SessionUtilityManager):
            return False
        names = [one.name for one in await self._of_runtime(session_id)]
        return COMPACT not in names and await self._runtime.can("compaction")

    async def _of_runtime(self, session_id: str) -> list[Command]:
        """Return the runtime's own commands."""
        if not isinstance(self._runtime.service, CommandManager):
            return []
        try:
            listed = await self._runtime.service.list_commands(ari.ListItemsRequest(session_id))
        except AriError:
            return []
        return [
            Command(one.name.removeprefix("/"), one.description, one.hint) for one in listed.items
        ]

    async def switches(self, session_id: str) -> list[Switch]:
        """Return the settings that users may switch.

        A setting that the runtime cannot list is left out.
        """
        runtime, offers = self._runtime.service, self._offers
        found: list[Switch] = []
        if isinstance(runtime, ModelManager):
            with suppress(AriError):
                models = (await runtime.list_models(ari.ListModelsRequest(session_id))).models
                model = (await runtime.get_model(ari.GetModelRequest(session_id))).model
                found.append(Switch("model", _offered(models, offers.models), model))
        if isinstance(runtime, ModeManager):
            with suppress(AriError):
                modes = (await runtime.list_modes(ari.ListModesRequest(session_id))).modes
                mode = (await runtime.get_mode(ari.GetModeRequest(session_id))).mode
                # A mode that does not ask is offered only if the operator lists it.
                safe = [one for one in modes if one.asks]
                choices = _offered(modes, offers.modes) if offers.modes else safe
                found.append(Switch("mode", choices, mode))
        if isinstance(runtime, ProviderManager) and offers.providers:
            with suppress(AriError):
                listed = await runtime.list_providers(ari.ListProvidersRequest(session_id))
                active = await runtime.get_active_provider(ari.GetActiveProviderRequest(session_id))
                providers = _offered(listed.providers, offers.providers)
                found.append(Switch("provider", providers, active.provider))
        return found

    async def carry_out(self, turn: Turn, link: LinkedSession) -> bool:
        """Carry out `/model`, `/mode` or `/provider`; return `False` for any other command."""
        wanted = turn.arguments.strip()
        offered = {switch.name: switch for switch in await self.switches(link.session_id)}
        switch = offered.get(turn.command or "")
        if switch is None:
            return False
        name, choices, current = switch
        if not wanted:
            rows = [
                f"- `{one.id}` {one.label}{' (current)' * (one.id == current)}" for one in choices
            ]
            await turn.say("\n".join([f"The {name} can be:", "", *rows]))
            return True
        if not switch.takes(wanted):
            known = ", ".join(one.id for one in choices) or "none"
            await turn.say(f"There is no {name} {wanted!r} here; choose one of: {known}.")
            return True
        chosen = await self._switch(name, link.session_id, wanted)
        link.switched[name] = wanted
        link.remember(turn)
        await turn.say(f"The {name} is now {chosen}.")
        if name == "model":
            link.model = chosen
        await self.announce(turn, link)
        return True

    async def switch_again(self, link: LinkedSession) -> None:
        """Restore the user's choices in an opened session, as far as they are still offered."""
        switches = await self.switches(link.session_id) if link.switched else ()
        for switch in switches:
            wanted = link.switched.get(switch.name)
            if wanted is None or wanted == switch.current:
                continue
            if switch.takes(wanted):
                with suppress(AriError):
                    await self._switch(switch.name, link.session_id, wanted)

    async def _switch(self, name: str, session_id: str, wanted: str) -> str:
        """Switch a setting; return the value that the runtime uses now."""
        runtime = self._runtime.service
        if name == "model" and isinstance(runtime, ModelManager):
            return (await runtime.set_model(ari.SetModelRequest(session_id, wanted))).model
        if name == "mode" and isinstance(runtime, ModeManager):
            return (await runtime.set_mode(ari.SetModeRequest(session_id, wanted))).mode
        assert isinstance(runtime, ProviderManager)
        request = ari.SetActiveProviderRequest(session_id, wanted)
        return (await runtime.set_active_provider(request)).provider


def _offered(choices: Sequence[ari.Choice], ids: Sequence[str]) -> Sequence[ari.Choice]:
    """Return a choice for each id, in their order; without ids, return all choices."""
    if not ids:
        return choices
    known = {choice.id: choice for choice in choices}
    return [known.get(one, ari.Choice(one)) for one in ids]
