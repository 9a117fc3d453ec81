"""Earlier names of fields in benchmark facts, and their current names."""

from __future__ import annotations

from typing import Final

from arp.protocol.json_value import Json, JsonObject

NOT_KNOWN: Final = "unavailable"
"""Value of a name that is not known."""

EXPORT_REFS: Final = ("trajectoryRef", "runtimeTranscriptRef")
"""Fields of `refs` that name the files which the export of a trial creates."""

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
"""Name in older facts → current name, which is the one of the profile."""


def renamed(value: Json) -> Json:
    """Return `benchmark`, `refs` or `comparison` of a fact with the current names.

    A value that is not an object is returned unchanged.
    """
    if not isinstance(value, dict) or RENAMED.keys().isdisjoint(value):
        return value
    return {RENAMED.get(name, name): found for name, found in value.items()}


def renamed_object(value: Json) -> JsonObject:
    """Return `renamed(value)`, or an empty object if the value is not an object."""
    return renamed(value) if isinstance(value, dict) else {}
