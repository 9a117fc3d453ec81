"""What becomes of an input that comes while a turn of its session runs."""

from typing import Literal, TypeAlias

Policy: TypeAlias = Literal["queue", "reject", "interrupt"]
"""It waits for its turn; it is refused with BUSY; or the running turn is cancelled for it."""
