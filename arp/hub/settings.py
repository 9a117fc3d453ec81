"""What can be set about a hub, with defaults and bounds."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from arp.protocol.limits import Count, Limits, Seconds
from arp.protocol.validate import explain
from arp.redact.settings import Redaction
from arp.session.policy import Policy

RuntimeId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=128,
        pattern=r"^[!-~]+\Z",
        description="1 to 128 printable ASCII characters without spaces",
    ),
]
"""Printable ASCII without spaces, so that it goes unchanged into a header, a path or a trace."""


class HubSettings(Struct, frozen=True):
    """How a hub behaves.

    Raises:
        ValueError: A value that a setting cannot have.
    """

    limits: Limits = Limits()
    redaction: Redaction = Redaction()
    """What is taken out of facts before they are written."""
    policy: Policy = "queue"
    """What becomes of an input while a turn runs."""
    takes_input: bool = True
    """Whether anybody may say, answer or change anything; what shows a recording takes no input."""
    idle_s: Seconds = 300.0
    """A session that nobody watches and that does nothing leaves the memory after this."""
    cancel_grace_s: Seconds = 5.0
    """How long a cancelled agent may clean up before its turn is closed over its head."""
    blocked_loop_s: Annotated[float, Meta(ge=0.1, le=3600)] = 1.0
    """An agent that blocks the loop for so long, and with it every session, is named in the log."""
    stop_grace_s: Seconds = 6.0
    """How long running turns may go on when the server stops; the rest are parked."""
    max_output_bytes: Count = 64 << 20
    """Of one output of a tool or process that is kept whole; of a larger one, the beginning."""
    max_sessions: Count = 10_000
    """In memory at once. Idle ones leave for new ones; if none is, those get RATE_LIMITED."""
    max_sessions_per_user: Count = 5_000
    """Of these, of one user with a name."""
    max_sessions_per_address: Count = 5_000
    """Of these, asked for from one address."""
    max_new_sessions_per_minute: Count = 3_000
    """That one user, or one address, may make."""
    max_stored_bytes_per_user: Count = 10 << 30
    """What the files of one user's sessions may hold; an upload beyond it gets RESOURCE_LIMIT."""
    high_water_bytes: Annotated[int, Meta(ge=1024, description="a number from 1024")] = 256 << 10
    """What may wait for one renderer; beyond it, it is behind and gets a catch-up later."""
    stall_s: Annotated[float, Meta(ge=1, le=3600)] = 30.0
    """A connection whose other end takes nothing for this long, though something waits for it, is
    cut under `arp serve`. A network that lost its way comes back sooner, or the renderer comes
    back by itself and resumes; a second is the least that says anything about either."""
    models_in_memory: Count = 64
    """Read models that are kept at hand; others are made from the store when somebody asks."""
    model_every_facts: Count = 2_000
    """After so many facts a session's read model and its state are stored again, behind the log."""
    telemetry: bool = False
    """Turns carry trace ids, and a server exports spans and metrics (extra `otel`)."""
    runtime_id: RuntimeId | None = None
    """Names this runtime in every fact (`runtimeId`); `None`: the name that was made with the
    ledger and is kept in its file."""
    max_replay: Annotated[int, Meta(ge=0, description="a number from 0")] = 10_000
    """Facts that a renderer may have missed and still be told one by one; beyond: a snapshot."""

    def __post_init__(self) -> None:
        """Refuse what no hub could follow, where it is written."""
        for name, kind in _kinds().items():
            value = getattr(self, name)
            if isinstance(value, dict):
                raise ValueError(f"HubSettings.{name}: expected {kind.__name__}(…), got a dict")
            try:
                msgspec.convert(value, kind)
            except msgspec.ValidationError as error:
                raise ValueError(explain(error, kind, f"HubSettings.{name}")) from None


@cache
def _kinds() -> dict[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(HubSettings)}
