"""`StoreUnderTest`: the interface that the author of a store implements for the suite."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from arp.conformance.cases import CaseUnreachable as CaseUnreachable
from arp.store.store import Store


class StoreUnderTest(Protocol):
    """One storage; each case gets a new, empty one.

    The suite calls `raise_fence` of a store object that has this method: then several objects, also
    in several processes, may have the storage open at the same time.
    """

    name: str
    """Name of the store in reports."""
    is_durable: bool = True
    """Whether a new store object has what an earlier one stored, also after a SIGKILL."""
    case_s: float = 60.0
    """Time limit of a case in seconds."""

    def make(self) -> Store:
        """Return a new store object over the storage, not opened, as another process would."""
        ...

    def damage(self, session_id: str, sequence: int) -> None:
        """Overwrite the stored bytes of a fact, as a failing disk does; no store object is open.

        Other facts of the session that are stored in one piece with this fact may be damaged too,
        but none that were stored when the store was last closed before this fact was appended.

        Raises:
            CaseUnreachable: The suite cannot damage this storage.
        """
        raise CaseUnreachable("StoreUnderTest.damage is not implemented")

    def damage_model(self, session_id: str, name: str) -> None:
        """Overwrite the stored data of a model; no store object is open.

        Raises:
            CaseUnreachable: The suite cannot damage this storage.
        """
        raise CaseUnreachable("StoreUnderTest.damage_model is not implemented")

    def end(self) -> None:
        """Remove what was created outside of the directory; called once, after the case."""
        return


class StoreFactory(Protocol):
    """The factory that `arp conformance store module:factory` names.

    The cases with a kill import it in another process, and call it with the same directory.
    """

    def __call__(self, directory: Path, /) -> StoreUnderTest:
        """Return a store under test, with a storage that belongs to the directory.

        Args:
            directory: Directory for the storage. It is empty, except in the other processes of a
                case. Storages of different directories are independent.
        """
        ...
