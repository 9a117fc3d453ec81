"""The tool that the scripted agent writes: a server that makes pictures smaller.

POST /api/compress {"image": "data:image/png;base64,…", "quality": 60, "max_width": 800}
"""

from __future__ import annotations

import base64
import io
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from PIL import Image

MAX_BODY = 16 << 20


def compress(params: dict[str, Any]) -> dict[str, Any]:
    """Return a picture as JPEG, and how much smaller it is."""
    given = str(params["image"])
    data = base64.b64decode(given.partition(",")[2] if given.startswith("data:") else given)
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    width = int(params.get("max_width") or picture.width)
    if width < picture.width:
        picture = picture.resize((width, max(1, round(picture.height * width / picture.width))))
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=int(params.get("quality", 60)), optimize=True)
    made = out.getvalue()
    return {
        "original_size": len(data),
        "compressed_size": len(made),
        "compression_ratio": round(len(made) / len(data), 4),
        "image": f"data:image/jpeg;base64,{base64.b64encode(made).decode()}",
    }


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    def do_POST(self) -> None:
        """Compress the picture in the request."""
        size = int(self.headers.get("content-length") or 0)
        if self.path != "/api/compress" or size > MAX_BODY:
            self.answer(404 if size <= MAX_BODY else 413, {"error": "POST /api/compress, 16 MB"})
            return
        try:
            params = json.loads(self.rfile.read(size))
            self.answer(200, compress(params))
        except (ValueError, KeyError, OSError) as error:
            self.answer(400, {"error": f"{type(error).__name__}: {error}"})

    def do_GET(self) -> None:
        """Report that the server runs."""
        self.answer(200, {"status": "ok"})

    def answer(self, status: int, value: dict[str, Any]) -> None:
        """Send JSON."""
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    port = int(os.environ["PORT"])
    print(f"Server started on port {port}", flush=True)
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
