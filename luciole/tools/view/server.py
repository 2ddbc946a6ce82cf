"""Serves one page and its arrays, to this machine alone, and to who knows the page's address."""

from __future__ import annotations

import hmac
import math
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from luciole.drawing.blobs import Blobs
from luciole.ir import LucioleError

ADDRESS = "127.0.0.1"

MOST_CONNECTIONS = 32
"""Connections at a time; a browser opens 6."""

SECONDS_TO_ASK = 10.0
"""From connecting to having asked with the token."""

SECONDS_TO_TAKE = 60.0
"""For each piece of an answer."""

PIECE = 1 << 16

MOST_VIEWS = 8
"""Views of opened files that are kept, beside the first one."""

MOST_KEPT = 2 << 30
"""Bytes of the files that are opened in them; the newest is always kept."""

Opener = Callable[[str, bytes, bool], "View"]
"""Makes, of a file's name and bytes, the view that shows it, alone or beside the first model."""


class View(NamedTuple):
    """A page, the document that it shows as JSON, and its arrays; what opens another file from
    there, and how many bytes the file had that it was opened for. Views never change.
    """

    page: bytes
    document: bytes
    blobs: Blobs
    opener: Opener | None = None
    size: int = 0


_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every answer. The page's own policy is in the page; the policy on who may frame it
cannot be.
"""


class Server(ThreadingHTTPServer):
    """Answers ``/TOKEN/`` with the page and ``/TOKEN/blob/N`` with an array.

    A file that a page opens makes a view with an address of its own, ``/TOKEN/VIEW/``: pages beside
    each other do not change what the other ones show. No two arrays have the same number.

    Who does not know the token learns nothing. A request whose Host is not this server's own
    address is refused: a page elsewhere that lets its name point here cannot read a model. Raises
    LucioleError when the port is taken.
    """

    daemon_threads = True
    request_queue_size = 128  # of 5, the rest would wait for seconds

    def __init__(
        self,
        page: str,
        blobs: Blobs,
        port: int = 0,
        opener: Opener | None = None,
        most_opened: int = 0,
    ) -> None:
        self.most_opened = most_opened
        self._views, self._count = {0: View(page.encode(), b"", blobs, opener)}, 1
        self._token, self._ticket = secrets.token_urlsafe(24), ""
        self._lock = threading.Lock()
        self._until: dict[socket.socket, float] = {}
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            reason = error.strerror or str(error)
            raise LucioleError(f"cannot serve on {ADDRESS}:{port}: {reason}") from None

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{ADDRESS}:{self.server_port}{self.root}"

    @property
    def root(self) -> str:
        """The path of the page."""
        return f"/{self._token}/"

    def url_for_once(self) -> str:
        """Return an address that leads to the page once: for a command line, which all users can
        read.
        """
        with self._lock:
            self._ticket = secrets.token_urlsafe(24)
            return f"http://{ADDRESS}:{self.server_port}/{self._ticket}"

    def takes_ticket(self, path: str) -> bool:
        """Return whether a path is the one that leads to the page once; from then on it does
        not.
        """
        with self._lock:
            fits = bool(self._ticket) and _same(path, f"/{self._ticket}")
            if fits:
                self._ticket = ""
            return fits

    def inside(self, path: str) -> str | None:
        """Find the part of the page that is asked for, ``""`` for itself; None where the token is
        wrong.
        """
        begin = self.root
        return path[len(begin) :] if _same(path[: len(begin)], begin) else None

    # ------------------------------------------------------------------------------ views
    def view(self, number: int) -> View | None:
        """Find a view, which is then the last one used."""
        with self._lock:
            view = self._views.pop(number, None)
            if view is not None:
                self._views[number] = view
            return view

    def keep(self, view: View) -> str:
        """Keep a view, and forget those that were not used for longest; its path."""
        with self._lock:
            number, self._count = self._count, self._count + 1
            self._views[number] = view
            while self._has_too_many():
                del self._views[next(n for n in self._views if n)]
        return f"{self.root}{number}/"

    def _has_too_many(self) -> bool:
        others = len(self._views) - 1
        kept = sum(view.size for view in self._views.values())
        return others > MOST_VIEWS or (others > 1 and kept > MOST_KEPT)

    def array(self, number: int) -> bytes | None:
        """Return the bytes of an array of any view."""
        with self._lock:
            holders = [v.blobs for v in self._views.values() if number in v.blobs.numbers]
        return holders[0].content(number) if holders else None

    # ------------------------------------------------------------------------ connections
    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Return whether there is room for a connection. Where there is none, the one that has
        taken longest to ask makes room.
        """
        with self._lock:
            if len(self._until) >= MOST_CONNECTIONS:
                asking = [c for c, until in self._until.items() if until < math.inf]
                if not asking:
                    return False
                self._hang_up(asking[0])
            self._until[request] = time.monotonic() + SECONDS_TO_ASK
        return True

    def asked(self, connection: socket.socket) -> None:
        """Note that who is at the other end knows the token."""
        with self._lock:
            if connection in self._until:
                self._until[connection] = math.inf

    def service_actions(self) -> None:
        """Hang up on who has not asked in time."""
        now = time.monotonic()
        with self._lock:
            for connection in [c for c, until in self._until.items() if until < now]:
                self._hang_up(connection)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._lock:
            self._until.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing of connections that break."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def _hang_up(self, connection: socket.socket) -> None:
        del self._until[connection]
        with suppress(OSError):  # it may have ended
            connection.shutdown(socket.SHUT_RDWR)  # its thread finds nothing more, and closes it


def _number(text: str) -> int | None:
    """Read a number as it stands in addresses."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _name(query: str) -> str | None:
    """Read the name of a file from a query, None from one that is none."""
    try:
        return parse_qs(query, max_num_fields=8).get("name", ["file"])[0]
    except ValueError:
        return None


def _same(text: str, secret: str) -> bool:
    """Return whether texts are equal, in a time that does not depend on how much of them is."""
    return hmac.compare_digest(text.encode("latin-1", "replace"), secret.encode())


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    server_version = "luciole"
    sys_version = ""
    timeout = SECONDS_TO_TAKE
    error_content_type = "text/plain; charset=utf-8"
    error_message_format = "%(code)d %(message)s\n"

    def do_GET(self) -> None:
        """Answer with the page or an array."""
        if not self._is_own_name():
            self.send_error(HTTPStatus.FORBIDDEN, "Another host's name")
        elif self.server.takes_ticket(self.path):
            self._lead_to_page()
        else:
            self._answer(self.server.inside(self.path))

    def do_POST(self) -> None:
        """Show a file that the page gives: ``open?name=...``, or ``compare?name=...`` to show it
        beside the first model. The answer is the document of a new view, whose path is its
        Location, or one line that says why not.
        """
        path, _, query = self.path.partition("?")
        if not self._is_own_name() or not self._is_own_page():
            self.send_error(HTTPStatus.FORBIDDEN, "Another host's name")
        elif (inside := self.server.inside(path)) is None:
            self.send_error(HTTPStatus.FORBIDDEN, "Not the address that circle-view printed")
        elif (name := _name(query)) is None:
            self.send_error(HTTPStatus.BAD_REQUEST, "Too many arguments")
        else:
            self.server.asked(self.connection)
            view, asked = self._found(inside)
            if view is not None and view.opener is None:
                self.send_error(HTTPStatus.NOT_IMPLEMENTED, "Unsupported method ('POST')")
            elif view is None or view.opener is None or asked not in ("open", "compare"):
                self.send_error(HTTPStatus.NOT_FOUND)
            else:
                self._open(view.opener, name, asked == "compare")

    def _found(self, inside: str) -> tuple[View | None, str]:
        """Find the view that is meant, and what of it."""
        first, slash, rest = inside.partition("/")
        number = _number(first) if slash else None
        return (self.server.view(0), inside) if number is None else (self.server.view(number), rest)

    def _open(self, opener: Opener, name: str, beside: bool) -> None:
        data = self._body()
        if data is None:
            return
        try:
            view = opener(name, data, beside)
        except (LucioleError, MemoryError) as error:
            text = str(error) or "there is not enough memory"
            kind = "text/plain; charset=utf-8"
            self._send(kind, f"{text}\n".encode(), HTTPStatus.UNPROCESSABLE_ENTITY)
        else:
            place = {"Location": self.server.keep(view)}
            self._send("application/json", view.document, HTTPStatus.CREATED, place)

    def _body(self) -> bytes | None:
        """Read the body of a request, None where it is refused or ended too early."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            self.send_error(HTTPStatus.LENGTH_REQUIRED)
        elif len(length) > 19 or int(length) > self.server.most_opened:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        else:
            data = bytearray()
            while len(data) < int(length):  # each piece within its time
                piece = self.rfile.read1(min(PIECE, int(length) - len(data)))
                if not piece:
                    return None
                data += piece
            return bytes(data)
        return None

    def _is_own_page(self) -> bool:
        """Return whether a page of this server asks, not another one that a browser shows."""
        origin = self.headers.get_all("Origin", [])
        hosts = self.headers.get_all("Host", [])
        return not origin or origin == [f"http://{host}" for host in hosts]

    def _is_own_name(self) -> bool:
        """Return whether the server is called what it is called."""
        port, hosts = self.server.server_port, self.headers.get_all("Host", [])
        return len(hosts) == 1 and hosts[0] in (f"{ADDRESS}:{port}", f"localhost:{port}")

    def do_HEAD(self) -> None:
        """Answer with what there would be."""
        self.do_GET()

    def _lead_to_page(self) -> None:
        self.send_response(HTTPStatus.SEE_OTHER)
        self.send_header("Location", self.server.root)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(self, inside: str | None) -> None:
        if inside is None:
            self.send_error(HTTPStatus.FORBIDDEN, "Not the address that circle-view printed")
            return
        self.server.asked(self.connection)
        view, asked = self._found(inside)
        number = _number(asked.removeprefix("blob/")) if asked.startswith("blob/") else None
        array = None if number is None else self.server.array(number)
        if array is not None:
            self._send("application/octet-stream", array)
        elif view is None:
            self.send_error(HTTPStatus.NOT_FOUND, "What was opened here is no longer kept")
        elif asked == "":
            self._send("text/html; charset=utf-8", view.page)
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _send(
        self,
        kind: str,
        content: bytes,
        status: HTTPStatus = HTTPStatus.OK,
        others: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.send_response(status)
        told = {"Content-Type": kind, "Content-Length": str(len(content)), **others}
        for name, text in told.items():
            self.send_header(name, text)
        self.end_headers()
        body = memoryview(b"" if self.command == "HEAD" else content)
        for start in range(0, len(body), PIECE):  # each within its time
            self.wfile.write(body[start : start + PIECE])

    def end_headers(self) -> None:
        """Send with every answer the headers that restrict browsers."""
        for name, text in _HEADERS.items():
            self.send_header(name, text)
        super().end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""
