"""What the terminal says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from arp.protocol.catalog import CATALOG
from arp.protocol.components import AUTHOR
from arp_terminal.connect import capabilities, locale_tag, time_zone


def test_levels_are_those_of_the_protocol() -> None:
    """protocol.md 7."""
    assert capabilities("minimal").versions() == {"text": 1}
    assert set(capabilities("basic").versions()) == {
        "text", "table", "form", "confirm", "choices", "status-card", "group", AUTHOR,
    }  # fmt: skip
    assert set(capabilities("standard").versions()) == {*CATALOG, AUTHOR}
    assert "streaming" in capabilities("basic").features
    with pytest.raises(ValueError, match="minimal, basic, standard"):
        capabilities("full")


@pytest.mark.parametrize(
    ("environ", "tag"),
    [
        ({"LANG": "de_CH.UTF-8"}, "de-CH"),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "fr_FR"}, "fr-FR"),
        ({"LANG": "C.UTF-8"}, None),
        ({"LANG": "POSIX"}, None),
        ({}, None),
    ],
)
def test_the_language_is_the_systems(environ: dict[str, str], tag: str | None) -> None:
    assert locale_tag(environ) == tag


def test_the_time_zone_is_the_systems(tmp_path: Path) -> None:
    zone = tmp_path / "zoneinfo" / "Europe" / "Zurich"
    zone.parent.mkdir(parents=True)
    zone.touch()
    link = tmp_path / "localtime"
    link.symlink_to(zone)
    assert time_zone({}, link) == "Europe/Zurich"
    assert time_zone({"TZ": ":Asia/Tokyo"}, link) == "Asia/Tokyo"
    assert time_zone({"TZ": "/etc/localtime"}, link) == "Europe/Zurich"
