"""What the tests of the examples share: the explorer's modules, data, a place to export to."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES / "explorer"))  # as Python does for the program that it starts

from dataset import Dataset, dataset_of_csv, open_dataset  # noqa: E402

MODEL_VARIABLES = [
    f"{vendor}_{name}"
    for vendor in ("OPENAI", "ANTHROPIC")
    for name in ("API_KEY", "BASE_URL", "MODEL")
]
PROXY_VARIABLES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]

FRUIT = b"""day,kind,weight,price
2024-01-01,apple,100,1.5
2024-01-15,pear,200,2.5
2024-02-01,apple,300,3.5
2025-02-02,plum,,0.5
"""


@pytest.fixture(autouse=True)
def explorer_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Nothing of the machine gets into a test: no key, home or proxy; returns where exports go.

    The explorer says everything at once.
    """
    for name in [*MODEL_VARIABLES, *PROXY_VARIABLES, "EXPLORER_DATA"]:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("EXPLORER_PACE_MS", "0")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("EXPLORER_EXPORT", str(tmp_path / "exports"))
    return tmp_path / "exports"


@pytest.fixture(scope="session")
def samples() -> Dataset:
    """The data that lies beside the explorer: `cars` and `seattle_weather`."""
    return open_dataset(EXAMPLES / "explorer" / "data")


@pytest.fixture(scope="session")
def small() -> Dataset:
    """A table `fruit` that can be computed in the head."""
    return dataset_of_csv("small", [("fruit.csv", FRUIT)])
