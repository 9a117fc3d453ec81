"""Reads the settings of the language model from the environment; without a key there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from errors import ModelFailed

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_MODEL = "gpt-4o-mini"
ANTHROPIC_URL = "https://api.anthropic.com"
ANTHROPIC_MODEL = "claude-sonnet-4-5"


@dataclass(frozen=True)
class ModelSettings:
    """The address, the name and the key of a model."""

    api: Literal["openai", "anthropic"]
    url: str
    """The URL of the endpoint."""
    model: str
    key: str = field(repr=False)
    """Never shown and never logged; empty for a server that needs none."""


def settings_from(environ: Mapping[str, str]) -> ModelSettings | None:
    """Return the settings of the first configured API; `None` if there is none.

    `OPENAI_API_KEY` or `OPENAI_BASE_URL` (a local server needs no key) with `OPENAI_MODEL`; else
    `ANTHROPIC_API_KEY` with `ANTHROPIC_BASE_URL` and `ANTHROPIC_MODEL`.

    Raises:
        ModelFailed: A key contains impossible characters. The message does not repeat it.
    """
    base = environ.get("OPENAI_BASE_URL", "").strip()
    key = _key(environ, "OPENAI_API_KEY")
    if base or key:
        url = (base or OPENAI_URL).rstrip("/") + "/chat/completions"
        return ModelSettings("openai", url, environ.get("OPENAI_MODEL") or OPENAI_MODEL, key)
    key = _key(environ, "ANTHROPIC_API_KEY")
    if key:
        base = (environ.get("ANTHROPIC_BASE_URL", "").strip() or ANTHROPIC_URL).rstrip("/")
        url = base.removesuffix("/v1") + "/v1/messages"
        model = environ.get("ANTHROPIC_MODEL") or ANTHROPIC_MODEL
        return ModelSettings("anthropic", url, model, key)
    return None


def _key(environ: Mapping[str, str], name: str) -> str:
    key = environ.get(name, "").strip()
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise ModelFailed(f"{name} holds characters that no key has.", "Copy the key again.")
    return key
