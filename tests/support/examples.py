"""The number of examples of a Hypothesis test that needs another number than the profile's."""

from __future__ import annotations

from hypothesis import settings

IN_CI = 100
"""The number of examples of the profile `ci`, which is Hypothesis's own default."""


def examples(in_ci: int) -> int:
    """Scale a number of examples like the profile: fewer on a developer's machine, more in a soak.

    Args:
        in_ci: The number with the profile `ci`.
    """
    return max(1, in_ci * settings().max_examples // IN_CI)
