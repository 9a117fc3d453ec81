"""Fill pytest's cache of rewritten test files, with all workers of xdist together.

pytest rewrites the assertions of each test file that it imports, and caches the result beside the
file. In a fresh clone the cache is empty, and all workers collect the same files at the same time.
Each worker would therefore rewrite every file, which takes nine seconds of processor time. Here
each worker first rewrites only its share of the files. This uses private functions of pytest; if a
version of pytest does not have them, every worker rewrites all files.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest


def write_share(config: pytest.Config) -> None:
    """Rewrite and cache this worker's share of the test files, except files in the cache."""
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
