"""The rewritten assertions of all test files, written by the workers of a run together.

pytest rewrites the assertions of each test file that it imports, and caches the result beside the
file. In a fresh clone there is no cache, and the workers of xdist collect the files at the same
time and in the same order: each would rewrite all of them, for nine seconds of processor time.
Here each worker first rewrites its share of the files. The functions are private to pytest; where
they are missing, pytest rewrites the files as it always does.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest


def write_share(config: pytest.Config) -> None:
    """Rewrite the share of one worker of xdist; files with a cache are left alone."""
    if sys.dont_write_bytecode:
        return
    try:
        from _pytest.assertion.rewrite import (
            PYC_TAIL,
            _rewrite_test,
            _write_pyc,
            assertstate_key,
            get_cache_dir,
        )
    except ImportError:
        return
    worker: dict[str, Any] = getattr(config, "workerinput", {})
    number = int(worker["workerid"].removeprefix("gw"))
    files = sorted(config.rootpath.glob("tests/**/test_*.py"))
    for file in files[number :: worker["workercount"]]:
        directory: Path = get_cache_dir(file)
        cached = directory / f"{file.stem}{PYC_TAIL}"
        if not cached.exists():
            directory.mkdir(parents=True, exist_ok=True)
            source, code = _rewrite_test(file, config)
            _write_pyc(config.stash[assertstate_key], code, source, cached)
