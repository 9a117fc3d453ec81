"""Addresses of files: what names one, and what does not."""

from __future__ import annotations

import base64

import pytest

from arp import ui
from arp.protocol.blob_path import BlobName, blob_path, parse_blob_path

SHA = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"


def base64url(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("session_id", "name", "path"),
    [
        ("abc", "plot.png", f"/_api/blobs/sYWJj/{SHA}/plot.png"),
        ("-x", "..", f"/_api/blobs/sLXg/{SHA}/file"),
        ("s", "archive.tar.gz", f"/_api/blobs/scw/{SHA}/archive.tar.gz"),
    ],
)
def test_address_is_one_that_images_and_links_take(session_id: str, name: str, path: str) -> None:
    """protocol.md 3: `src` of an image may be a path below /_api/blobs/."""
    assert blob_path(session_id, SHA, name) == path
    assert ui.image(path, "A plot").props["src"] == path
    assert parse_blob_path(path) == BlobName(session_id, SHA, path.rpartition("/")[2])


@pytest.mark.parametrize(
    ("name", "kept", "plain"),
    [
        ("my plot (1).png", "my plot (1).png", "my-plot-1.png"),
        ("안내서.pdf", "안내서.pdf", "file.pdf"),
        ("été ✓.csv", "été ✓.csv", "t.csv"),
        ("données", "données", "donn-es"),
        (".hidden", ".hidden", "hidden"),
        ('a"b\n;c.txt', 'a"b;c.txt', "a-b-c.txt"),
        ("../folder\\日本.txt", "日本.txt", "folder.txt"),
        ("gpj\u202ecod.exe", "gpjcod.exe", "gpj-cod.exe"),
        ("\ud800half.txt", "half.txt", "half.txt"),
    ],
)
def test_name_with_any_characters_is_in_the_address_and_comes_back(
    name: str, kept: str, plain: str
) -> None:
    """The name stays, but what would be a folder or deceive; old screens take the address too."""
    path = blob_path("a/b?c", SHA, name)
    middle = "" if kept == plain else f"n{base64url(kept)}/"
    assert path == f"/_api/blobs/sYS9iP2M/{SHA}/{middle}{plain}"
    assert ui.image(path, "A plot").props["src"] == path
    assert parse_blob_path(path) == BlobName("a/b?c", SHA, kept)


def test_longest_name_is_cut_between_two_characters() -> None:
    found = parse_blob_path(blob_path("s", SHA, "日" * 300))
    assert found == BlobName("s", SHA, "日" * 85)


@pytest.mark.parametrize(
    "path",
    [
        "/_api/blobs/",
        f"/_api/blobs/{SHA}",
        f"/_api/blobs/sYWJj/{SHA}",
        f"/_api/blobs/sYWJj/{SHA}/",
        f"/_api/blobs/YWJj/{SHA}/x",
        f"/_api/blobs/sYWJj/{SHA}/a/b",
        f"/_api/blobs/sYWJj/{SHA}/n!/b",
        f"/_api/blobs/sYWJj/{SHA}/n_w/b",
        f"/_api/blobs/sYWJj/{SHA}/nYQ/b/c",
        f"/_api/blobs/sYWJj/{SHA}//b",
        f"/_api/blobs/s!!!/{SHA}/x",
        f"/_api/blobs/s_w/{SHA}/x",
    ],
)
def test_path_that_names_no_file_is_none(path: str) -> None:
    """Never an exception: it comes from outside."""
    assert parse_blob_path(path) is None
