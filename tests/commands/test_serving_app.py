"""What `arp serve` calls an app, and so its ledger."""

from __future__ import annotations

import pytest

from arp.commands.serve.serve_settings import ServeSettings
from arp.commands.serve.serving_app import ledger_name_of


@pytest.mark.parametrize(
    ("target", "serving", "name"),
    [
        ("shop.py:app", ServeSettings(), "shop.py:app"),
        (None, ServeSettings(runtime="claude-code"), "claude-code"),
        (None, ServeSettings(runtime="acp:opencode acp"), "acp"),
        (None, ServeSettings(model="openai:gpt-5"), "openai"),
    ],
)
def test_a_ledger_is_named_after_the_target_the_runtime_or_the_model(
    target: str | None, serving: ServeSettings, name: str
) -> None:
    """An error that proposes a ledger of its own names the same file as the default."""
    assert ledger_name_of(target, serving) == name
