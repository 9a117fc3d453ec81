"""The schemas and examples in the tree are what the code makes now."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tools import gen_fixtures, gen_runtime_schemas


@pytest.mark.parametrize("tool", [gen_runtime_schemas, gen_fixtures], ids=["schemas", "fixtures"])
def test_what_is_generated_is_up_to_date(
    tool: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tool.main(["--check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("tool", [gen_runtime_schemas, gen_fixtures], ids=["schemas", "fixtures"])
def test_a_check_says_what_is_stale_and_writes_nothing(
    tool: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    assert tool.main(["--check"]) == 1
    assert "is out of date; run make " in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
    assert tool.main([]) == 0
    written = sorted(path for path in tmp_path.rglob("*.json"))
    assert len(written) == len(tool.files())
    written[0].write_text("{}")
    assert tool.main(["--check"]) == 1
    assert capsys.readouterr().out.count("is out of date") == 1
