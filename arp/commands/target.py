"""Find the `App` that a command line names: a file or a module, and an object in it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TypeVar

A = TypeVar("A")


class TargetError(Exception):
    """The target is wrong; the message says what to write instead."""


def find(target: str, kind: type[A]) -> A:
    """Return the object that `FILE.py[:NAME]` or `package.module[:NAME]` names.

    Args:
        target: The target.
        kind: Class of the object.

    Raises:
        TargetError: There is no such file, module or object; or the target has no name, and there
            are several objects, none of them called `app`.
        Exception: The file itself raises it.
    """
    place, _, name = target.partition(":") if not _is_drive(target) else (target, "", "")
    module = _load(place)
    if name:
        found = getattr(module, name, None)
        if not isinstance(found, kind):
            raise TargetError(f"no {kind.__name__} object named {name!r} in {place}")
        return found
    candidates = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, kind) and not key.startswith("_")
    }
    if not candidates:
        raise TargetError(
            f'no {kind.__name__} object in {place}; write "app = {kind.__name__}(…)" '
            f'or name it, as in "arp serve {place}:NAME"'
        )
    if "app" in candidates:
        return candidates["app"]
    if len({id(value) for value in candidates.values()}) > 1:
        names = ", ".join(sorted(candidates))
        raise TargetError(
            f"several {kind.__name__} objects in {place} ({names}); "
            f'name one, as in "arp serve {place}:NAME"'
        )
    return next(iter(candidates.values()))


def find_callable(target: str) -> Callable[..., object]:
    """Return the function or class that `FILE.py:NAME` or `package.module:NAME` names.

    Raises:
        TargetError: There is no such file, module or function.
        Exception: The file itself raises it.
    """
    place, _, name = target.rpartition(":") if not _is_drive(target) else ("", "", "")
    if not place or not name:
        raise TargetError(f'{target!r} names no function; write it as in "package.module:factory"')
    found: object = getattr(_load(place), name, None)
    if not callable(found):
        raise TargetError(f"there is no function {name!r} in {place}")
    return found


def _is_drive(target: str) -> bool:
    """Return whether the only colon of a target is that of a Windows drive."""
    return len(target) > 2 and target[1] == ":" and target[2] in "\\/" and ":" not in target[2:]


def _load(place: str) -> ModuleType:
    path = Path(place)
    if path.suffix == ".py" or path.is_file():
        if not path.is_file():
            raise TargetError(f"there is no file {place}")
        sys.path.insert(0, str(path.resolve().parent))
        name = path.stem if path.stem not in sys.modules else f"arp_target_{path.stem}"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise TargetError(f"{place} is not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module
    if path.is_dir():
        raise TargetError(f"{place} is a directory; name a file: {place.rstrip('/')}/app.py")
    sys.path.insert(0, "")
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        # Another name means that an import inside the module failed, which is the author's error.
        if error.name != place.partition(".")[0] and error.name != place:
            raise
        raise TargetError(f"there is no file and no module {place!r}") from None
