"""Settings of a hub, with defaults and bounds."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from arp.protocol.limits import Count, Limits, Seconds
from arp.protocol.validate import check_fields
from arp.redact.settings import Redaction
from arp.session.turn_states import Policy

RuntimeId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=128,
        pattern=r"^[!-~]+\Z",
        description="1 to 128 printable ASCII characters without spaces",
    ),
]
"""Printable ASCII without spaces, so that a header, a path or a trace can hold it unchanged."""

TransferKey = Annotated[
    str,
    Meta(
        min_length=16,
        max_length=4096,
        pattern=r"^[!-~]+\Z",
        description="a secret of 16 or more printable ASCII characters without spaces",
    ),
]
"""Key that signs which surface is transferred where, so that the other server can verify it."""


class HubSettings(Struct, frozen=True):
    """Settings of a hub.

    Raises:
        ValueError: A value is out of bounds.
    """

    limits: Limits = Limits()
    """The limits of the protocol, sent in `hello`."""
    redaction: Redaction = Redaction()
    """Rules for the secrets that are removed from facts before they are written."""
    policy: Policy = "queue"
    """What happens to an input while a turn runs: `queue`, `reject` or `interrupt`."""
    takes_input: bool = True
    """Whether the server accepts input; a server that shows a recording does not."""
    idle_s: Seconds = 300.0
    """An idle session without renderers is evicted from memory after this time."""
    serial_max_age_s: Seconds = 5.0
    """Maximum age of the input that an agent answers with a popup, an overlay or fullscreen."""
    cancel_grace_s: Seconds = 5.0
    """Time for a cancelled agent to clean up before the server ends its turn."""
    blocked_loop_s: Annotated[float, Meta(ge=0.1, le=3600, description="0.1…3600")] = 1.0
    """If an agent blocks the event loop, and so every session, for this time, the log names it."""
    stop_grace_s: Seconds = 6.0
    """Time for running turns to end when the server stops; the others are interrupted."""
    max_output_bytes: Count = 64 << 20
    """Bytes of one output of a tool or process that are stored; the rest is cut off."""
    max_sessions: Count = 10_000
    """Sessions in memory. A new one evicts an idle one; if none is idle, it is refused
    (RATE_LIMITED)."""
    max_sessions_per_user: Count = 5_000
    """Sessions in memory of one named user."""
    max_sessions_per_address: Count = 5_000
    """Sessions in memory that were opened from one address."""
    max_new_sessions_per_minute: Count = 3_000
    """Sessions that one user, or one address, may create in a minute."""
    max_stored_bytes_per_user: Count = 10 << 30
    """Size of all files in one user's sessions; an upload beyond it is refused (RESOURCE_LIMIT)."""
    high_water_bytes: Annotated[int, Meta(ge=1024, description="a number from 1024")] = 256 << 10
    """Bytes that may wait for one renderer; beyond it, it is lagging and gets a catch-up later."""
    stall_s: Annotated[float, Meta(ge=1, le=3600, description="1…3600")] = 30.0
    """Under `arp serve`, a connection is closed if its other end reads nothing for this long while
    data waits for it. A renderer that was only offline reconnects and resumes. At least 1."""
    models_in_memory: Count = 64
    """Read models kept in memory; others are rebuilt from the store on request."""
    model_every_facts: Count = 2_000
    """After this many facts, the read model and the state of a session are stored again."""
    record_model_messages: bool = False
    """Whether `model.requested` holds the messages that a model gets, if the runtime reports them:
    the whole conversation again with each request. Secrets are redacted, as in every fact."""
    telemetry: bool = False
    """Whether turns carry trace ids and a server exports spans and metrics (extra `otel`)."""
    runtime_id: RuntimeId | None = None
    """The `runtimeId` in every fact; `None` means the id that was created with the ledger and is
    stored in it."""
    transfer_key: TransferKey | None = None
    """Secret of servers that accept surfaces from each other's sessions; `None` means that surfaces
    are accepted only from sessions of this server."""
    max_replay: Annotated[int, Meta(ge=0, description="a number from 0")] = 10_000
    """Facts sent one by one to a resuming renderer; if it missed more, it gets a snapshot."""

    def __post_init__(self) -> None:
        """Check all bounds."""
        check_fields(self)
