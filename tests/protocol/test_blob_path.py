"""Addresses of files: what names one, and what does not."""

from __future__ import annotations

import pytest

from arp import ui
from arp.protocol.blob_path import BlobName, blob_path, parse_blob_path

SHA = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"


@pytest.mark.parametrize(
    ("session_id", "name", "path"),
    [
        ("abc", "plot.png", f"/_api/blobs/sYWJj/{SHA}/plot.png"),
        ("a/b?c", "my plot (1).png", f"/_api/blobs/sYS9iP2M/{SHA}/my-plot-1.png"),
        ("-x", "..", f"/_api/blobs/sLXg/{SHA}/file"),
        ("~~~", "données", f"/_api/blobs/sfn5-/{SHA}/donn-es"),
        ("s", ".hidden", f"/_api/blobs/scw/{SHA}/hidden"),
        ("s", "archive.tar.gz", f"/_api/blobs/scw/{SHA}/archive.tar.gz"),
    ],
)
def test_address_is_one_that_images_and_links_take(session_id: str, name: str, path: str) -> None:
    """protocol.md 3: `src` of an image may be a path below /_api/blobs/."""
    assert blob_path(session_id, SHA, name) == path
    assert ui.image(path, "A plot").props["src"] == path
    assert parse_blob_path(path) == BlobName(session_id, SHA, path.rpartition("/")[2])


@pytest.mark.parametrize(
    "path",
    [
        "/_api/blobs/",
        f"/_api/blobs/{SHA}",
        f"/_api/blobs/sYWJj/{SHA}",
        f"/_api/blobs/sYWJj/{SHA}/",
        f"/_api/blobs/YWJj/{SHA}/x",
        f"/_api/blobs/sYWJj/{SHA}/a/b",
        f"/_api/blobs/s!!!/{SHA}/x",
        f"/_api/blobs/s_w/{SHA}/x",
    ],
)
def test_path_that_names_no_file_is_none(path: str) -> None:
    """Never an exception: it comes from outside."""
    assert parse_blob_path(path) is None
