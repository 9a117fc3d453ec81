"""Number of examples for a Hypothesis test that needs more or fewer than its profile gives."""

from __future__ import annotations

from hypothesis import settings

IN_CI = 100
"""Number of examples in the profile `ci`; it is the default of Hypothesis."""


def examples(in_ci: int) -> int:
    """Return a number of examples, scaled to the profile: fewer in `local`, more in `soak`.

    Args:
        in_ci: Number of examples in the profile `ci`.
    """
    return max(1, in_ci * settings().max_examples // IN_CI)
