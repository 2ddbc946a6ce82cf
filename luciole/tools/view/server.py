"""Serves one page and its arrays, to this machine alone."""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from luciole.ir import LucioleError
from luciole.tools.view.blobs import Blobs

ADDRESS = "127.0.0.1"


class Server(ThreadingHTTPServer):
    """Answers ``/`` with the page and ``/blob/N`` with an array; everything else is not there.

    A request whose Host is not this server's own address is refused: a page elsewhere that lets its
    name point here cannot read a model. Raises LucioleError when the port is taken.
    """

    daemon_threads = True

    def __init__(self, page: str, blobs: Blobs, port: int = 0) -> None:
        self.page, self.blobs = page.encode(), blobs
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            reason = error.strerror or str(error)
            raise LucioleError(f"cannot serve on {ADDRESS}:{port}: {reason}") from None

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{ADDRESS}:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    server_version = "luciole"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with the page or an array."""
        port = self.server.server_port
        if self.headers.get("Host") not in (f"{ADDRESS}:{port}", f"localhost:{port}"):
            self.send_error(HTTPStatus.FORBIDDEN, "another host's name")
            return
        if self.path == "/":
            self._answer("text/html; charset=utf-8", self.server.page)
            return
        prefix, _, number = self.path.rpartition("/")
        known = {str(n) for n in range(len(self.server.blobs))}
        if prefix != "/blob" or number not in known:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self._answer("application/octet-stream", self.server.blobs.content(int(number)))

    def _answer(self, kind: str, content: bytes) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""
