"""Which facts a scope is about, from all pages at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from arp.audit.evidence.export import checked
from arp.audit.evidence.manifest import Scope
from arp.audit.evidence.scope import Range


def range_of(scope: Scope, pages: Iterable[Sequence[tuple[int, bytes]]]) -> Range | None:
    """Return which facts a scope is about; `None` means all.

    Raises:
        NoSuchScope: No fact carries its ids.
    """
    if scope.is_all:
        return None
    found = Range(scope)
    for page in pages:
        found.add_page(page)
    return checked(found, scope)
