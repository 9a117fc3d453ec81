"""Names of fields in benchmark facts: those that ledgers of before have, as they are now."""

from __future__ import annotations

from typing import Final

from arp.protocol.json_value import Json, JsonObject

NOT_KNOWN: Final = "unavailable"
"""The value of a name that nobody gave."""

EXPORT_REFS: Final = ("trajectoryRef", "runtimeTranscriptRef")
"""What the export of a trial makes, in `refs` of its fact."""

RENAMED: Final = {
    "changedVariable": "singleChangedVariable",
    "p0Regressions": "p0QcGateRegressionCount",
    "evidenceCompleteness": "evidenceCompletenessRate",
    "harborJob": "harborJobRef",
    "harborTrial": "harborTrialRef",
    "taskToml": "taskTomlRef",
    "trajectory": "trajectoryRef",
    "reward": "rewardRef",
    "rewardDetails": "rewardDetailsRef",
    "artifactManifest": "artifactManifestRef",
    "qcReport": "agentQcReportRef",
}
"""Name in facts that were written before the profile's own names were used → name now."""


def renamed(value: Json) -> Json:
    """Return `benchmark`, `refs` or `comparison` of a fact with the names of now.

    A value that is no object is returned as it is.
    """
    if not isinstance(value, dict) or RENAMED.keys().isdisjoint(value):
        return value
    return {RENAMED.get(name, name): found for name, found in value.items()}


def renamed_object(value: Json) -> JsonObject:
    """Return an object as `renamed` does, and an empty one for what is no object."""
    return renamed(value) if isinstance(value, dict) else {}
