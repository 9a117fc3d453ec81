"""What a stranger may have made of a pack is refused before much of it is read."""

from __future__ import annotations

import os
import re
import struct
import warnings
import zipfile
from pathlib import Path

import pytest

from arp.audit.evidence.checking import check_pack
from arp.audit.evidence.manifest import FACTS, MANIFEST, MOST_PARTS
from arp.audit.evidence.pack import MOST_DIRECTORY, NoPack, Pack, PartMissing
from tests.audit.evidence.packs import bodies, exported


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    exported(bodies(60), tmp_path / "pack")
    return tmp_path / "pack"


def zipped(pack: Path, *more: str) -> Path:
    """Pack a directory, and further entries of one byte."""
    target = pack.with_suffix(".zip")
    with warnings.catch_warnings(), zipfile.ZipFile(target, "w") as into:
        warnings.simplefilter("ignore")  # a name twice
        for part in pack.iterdir():
            into.write(part, part.name)
        for name in more:
            into.writestr(name, b"x")
    return target


@pytest.mark.parametrize("part", ["thread.json", FACTS, MANIFEST])
def test_a_named_pipe_in_the_place_of_a_part_is_refused_at_once(pack: Path, part: str) -> None:
    (pack / part).unlink()
    os.mkfifo(pack / part)
    if part == MANIFEST:
        with pytest.raises(NoPack, match=r"'manifest.json' is no regular file"):
            Pack(pack)
        return
    with Pack(pack) as opened:
        broken = check_pack(opened).broken
    told = [str(one) for one in broken]
    assert f"{part}: '{part}' is no regular file" in told or "fact 1: it is missing" in told[0]


def test_a_named_pipe_that_nobody_named_is_told_and_one_for_a_pack_is_none(pack: Path) -> None:
    os.mkfifo(pack / "more")
    (pack / "out").symlink_to(pack.parent)
    with Pack(pack) as opened:
        told = [str(one) for one in check_pack(opened).broken]
    assert told == ["more: is not in the manifest", "out: is not in the manifest"]
    with pytest.raises(NoPack, match="there is no pack"):
        Pack(pack / "more")


def test_a_part_that_is_a_link_out_of_the_pack_is_not_read(pack: Path) -> None:
    (pack.parent / "secret").write_text("mine")
    (pack / "thread.json").unlink()
    (pack / "thread.json").symlink_to(pack.parent / "secret")
    with Pack(pack) as opened, pytest.raises(PartMissing, match="lies outside of the pack"):
        opened.read("thread.json")


def test_a_zip_of_60_000_entries_is_refused_by_the_size_of_its_directory(tmp_path: Path) -> None:
    target = tmp_path / "many.zip"
    with zipfile.ZipFile(target, "w") as into:
        for number in range(60_000):
            into.writestr(f"outputs/{number:064}", b"")
    with pytest.raises(NoPack, match=f"more than {MOST_PARTS} entries"):
        Pack(target)


def test_entries_of_short_names_are_counted_when_the_directory_was_read(
    pack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = zipped(pack, "a", "b")
    monkeypatch.setattr("arp.audit.evidence.pack.MOST_PARTS", 5)
    with pytest.raises(NoPack, match="it has more than 5 entries"):
        Pack(target)


def test_a_directory_of_too_many_entries_is_refused(
    pack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arp.audit.evidence.pack.MOST_PARTS", 5)
    with pytest.raises(NoPack, match="it has more than 5 entries"):
        Pack(pack)


def test_a_large_directory_is_seen_where_zip64_or_a_comment_tells_its_size(tmp_path: Path) -> None:
    size = MOST_DIRECTORY + 1
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, 0xFFFFFFFF, 0xFFFFFFFF, 3) + b"abc"
    record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, size, 0)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, 0, 1)
    (tmp_path / "large.zip").write_bytes(record + locator + end)
    with pytest.raises(NoPack, match=f"more than {MOST_PARTS} entries"):
        Pack(tmp_path / "large.zip")
    hidden = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, size, 0, 0)
    (tmp_path / "hidden.zip").write_bytes(hidden[:16] + b"PK\5\6" + hidden[20:])
    with pytest.raises(NoPack):
        Pack(tmp_path / "hidden.zip")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("thread.json", "'thread.json' is in it twice"),
        ("../secret", "'../secret' is no path inside a pack"),
        ("/etc/passwd", "'/etc/passwd' is no path inside a pack"),
        ("a\\b", "is no path inside a pack"),
    ],
)
def test_an_entry_that_no_export_writes_is_refused(pack: Path, name: str, reason: str) -> None:
    with pytest.raises(NoPack, match=re.escape(reason)):
        Pack(zipped(pack, name))


def test_an_encrypted_entry_is_refused(pack: Path) -> None:
    target = zipped(pack)
    data = bytearray(target.read_bytes())
    place = data.index(b"PK\1\2")
    data[place + 8] |= 1
    target.write_bytes(data)
    with pytest.raises(NoPack, match="is encrypted"):
        Pack(target)


def test_entries_that_share_bytes_are_refused(pack: Path) -> None:
    """So a small zip holds at most what its own bytes unpack to, once."""
    target = zipped(pack)
    data = bytearray(target.read_bytes())
    first = data.index(b"PK\1\2")
    second = data.index(b"PK\1\2", first + 4)
    data[second + 42 : second + 46] = data[first + 42 : first + 46]
    target.write_bytes(data)
    with pytest.raises(NoPack, match="shares bytes with another entry"):
        Pack(target)


def test_a_manifest_that_unpacks_to_much_is_not_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arp.audit.evidence.pack.MOST_MANIFEST", 1 << 20)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as into:
        into.writestr(MANIFEST, b" " * (64 << 20))
    with pytest.raises(NoPack, match=r"manifest\.json is larger than 1048576 bytes"):
        Pack(tmp_path / "bomb.zip")
