"""The page `/_inspect`: what is happening in a session, and why it failed.

It is files alone. What it shows it asks of the control plane, as anyone would; so the files are
open like the chat page's, and what they show is not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from arp.server.page import HEADERS

INSPECT: Final = "/_inspect"

FILES = Path(__file__).parent / "static" / "inspect"


class _Files(StaticFiles):
    """The page's files, with headers that let them do only what they must."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers.update(HEADERS)
        return response


def inspect_routes() -> list[BaseRoute]:
    """Gives the page, and its files below it."""
    return [Route(INSPECT, _index), Mount(INSPECT, _Files(directory=FILES))]


async def _index(_: Request) -> Response:
    return FileResponse(FILES / "index.html", headers=HEADERS)
