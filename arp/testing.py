"""What tests of your own code import.

`FakeRuntime` is an agent runtime whose turns you write out, for tests of code that drives runtimes.
"""

from arp.runtime.fake import (
    Fails,
    FakeRuntime,
    Says,
    Step,
    Tells,
    Thinks,
    Uses,
    Waits,
)

__all__ = ["Fails", "FakeRuntime", "Says", "Step", "Tells", "Thinks", "Uses", "Waits"]
