"""What lasts: files, exports, read models; and what somebody should look at."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from arp.ledger.payload_fields import Export, ExportKind, Verification
from arp.protocol.json_value import Json
from arp.record.outputs import Kept
from arp.record.scope import FactScope
from arp.record.wording import check_kind


class Exported(Struct, frozen=True, kw_only=True):
    """What is known about an export."""

    kind: ExportKind
    state: Export
    """`not_applicable`: nothing to export; `unsupported`: not here; `missing_correlation`: what it
    would be about is not known."""
    reason: str | None = None
    sha256: str | None = None
    """Of the pack."""
    through_sequence: int | None = None
    """The last fact in it."""
    gaps: Sequence[str] = ()
    """Known gaps that apply."""
    verification: Verification | None = None


class Lasting:
    """What outlives the turn."""

    __slots__ = ("_scope",)

    def __init__(self, scope: FactScope) -> None:
        self._scope = scope

    def file(
        self,
        artifact_id: str,
        name: str,
        *,
        mime: str | None = None,
        sha256: str | None = None,
        kept: Kept | None = None,
    ) -> None:
        """Notes that a file is new or was changed.

        Args:
            artifact_id: The same for all versions of the file.
            name: For people.
            mime: Its media type.
            sha256: Of its bytes.
            kept: As `turn.record.keep` gave it, where the bytes lie beside the ledger.
        """
        if kept is not None:
            check_kind(kept, Kept, "kept")
        ref = kept.output_ref if kept is not None else None
        size = kept.bytes if kept is not None else None
        payload = {"name": name, "mime": mime, "sha256": sha256 or ref, "bytes": size}
        self._scope.record("artifact.changed", payload, artifact_id=artifact_id, output_ref=ref)

    def evidence(self, exported: Exported, evidence_id: str | None = None) -> str:
        """Notes an export, or a check of one; gives its id.

        Args:
            exported: What is known about it.
            evidence_id: `None` makes one; a check names the export that it was of.
        """
        check_kind(exported, Exported, "exported")
        name = evidence_id or self._scope.new_id("evidence")
        payload = {
            "kind": exported.kind,
            "state": exported.state,
            "reason": exported.reason,
            "sha256": exported.sha256,
            "throughSequence": exported.through_sequence,
            "gaps": list(exported.gaps) or None,
            "verification": exported.verification,
        }
        self._scope.record("evidence.changed", payload, evidence_id=name)
        return name

    def snapshot_updated(
        self, read_model: str, through_sequence: int, size: int | None = None
    ) -> None:
        """Notes that a read model was stored, and how far it covers the log."""
        payload = {"readModel": read_model, "throughSequence": through_sequence, "bytes": size}
        self._scope.record("snapshot.updated", payload)

    def snapshot_repaired(self, read_model: str, through_sequence: int, reason: str) -> None:
        """Notes that a read model was made anew from the log."""
        payload = {"readModel": read_model, "throughSequence": through_sequence}
        self._scope.record("snapshot.repaired", {**payload, "reason": reason})

    def policy_changed(self, policy: str, value: Json, previous: Json = None) -> None:
        """Notes that a policy is another one now."""
        payload = {"policy": policy, "value": value, "previous": previous}
        self._scope.record("policy.changed", payload)

    def titled(self, title: str) -> None:
        """Notes what the session is called from now on."""
        self._scope.record("session.updated", {"title": title})

    def thread(self, status: str, reason: str | None = None) -> None:
        """Notes how the thread stands where its turns do not tell."""
        self._scope.record("thread.updated", {"reason": reason}, status=status)

    def warning(self, message: str, detail: Json = None) -> None:
        """Notes what somebody should look at; no renderer shows it."""
        self._scope.record("runtime.warning", {"message": message, "detail": detail})
