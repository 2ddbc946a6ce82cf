"""The server: its own page and arrays, under its own name, to who has the token."""

from __future__ import annotations

import http.client
import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np
import pytest

from luciole.drawing.blobs import Blobs
from luciole.ir import LucioleError
from luciole.tools.view import server as module
from luciole.tools.view.server import MOST_CONNECTIONS, MOST_VIEWS, Server, View
from tests.support import heed_interrupts
from tests.tools.view.conftest import Digits

LARGE = 30_000_000


@pytest.fixture
def server() -> Iterator[Server]:
    blobs = Blobs()
    blobs.add(np.arange(5, dtype=np.float32))
    blobs.later("u1", (LARGE,), lambda: np.zeros(LARGE, np.uint8))
    running = Server("<p>page</p>", blobs)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


def answer(
    server: Server, path: str, host: str | None = None, method: str = "GET"
) -> http.client.HTTPResponse:
    """What the server says to a whole path."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    headers = {} if host is None else {"Host": host}
    connection.request(method, path, headers=headers)
    return connection.getresponse()


def ask(
    server: Server, path: str, host: str | None = None, method: str = "GET"
) -> tuple[int, bytes]:
    """Status and contents of something of the page."""
    found = answer(server, server.root + path, host, method)
    return found.status, found.read()


def test_it_answers_with_its_page_and_arrays(server: Server) -> None:
    assert ask(server, "") == (200, b"<p>page</p>")
    assert ask(server, "", f"localhost:{server.server_port}")[0] == 200
    status, content = ask(server, "blob/0")
    assert status == 200
    np.testing.assert_array_equal(np.frombuffer(content, "<f4"), np.arange(5))


def test_head_says_how_long_the_answer_would_be(server: Server) -> None:
    found = answer(server, server.root + "blob/0", method="HEAD")
    assert (found.status, found.getheader("Content-Length"), found.read()) == (200, "20", b"")


@pytest.mark.parametrize(
    "path",
    ["blob/2", "blob/-1", "blob/0x0", "blob/", "blob/%D9%A0", "../setup.cfg", "index.html", "?x"],
)
def test_the_server_refuses_everything_else(server: Server, path: str) -> None:
    assert ask(server, path)[0] == 404


def test_the_server_refuses_requests_without_the_token(server: Server) -> None:
    token = server.root[1:-1]
    assert len(token) == 32
    for path in (
        "/",
        "/blob/0",
        f"/{token}",
        f"/{token[:-1]}/",
        f"/{token}x/",
        f"/{token.swapcase()}/",
        f"/?{token}",
        f"/%{ord(token[0]):x}{token[1:]}/",
        "/" + "x" * 70_000,
        "*",
        server.url,
    ):
        found = answer(server, path)
        content = found.read()
        assert found.status in (403, 414), path
        assert token.encode() not in content
    assert found.status == 403, "an address is no path"


@pytest.mark.parametrize(
    ("path", "status"),
    [("HTTP://[x", 403), ("{}open?" + "a=1&" * 100, 400), ("/open?" + "a=1&" * 100, 403)],
)
def test_the_server_refuses_odd_addresses_in_a_line(
    server: Server, path: str, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    found = answer(server, path.format(server.root), method="POST")
    assert found.status == status
    assert found.read().decode().count("\n") == 1
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("line", [b"GET /\xc3\xa9/ HTTP/1.1", b"GET /", b"GET", b"\0\0\0"])
def test_the_server_refuses_odd_requests(server: Server, line: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as client:
        client.sendall(line + b"\r\nHost: 127.0.0.1:%d\r\n\r\n" % server.server_port)
        found = client.makefile("rb").read()
    assert b"403" in found or b"400" in found
    assert b"<p>page</p>" not in found


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "localhost:1", "127.0.0.1:80@x", ""])
def test_the_server_refuses_other_names(server: Server, host: str) -> None:
    assert ask(server, "", host)[0] == 403
    assert ask(server, "blob/0", host)[0] == 403


def test_the_server_refuses_two_names(server: Server) -> None:
    own = f"Host: 127.0.0.1:{server.server_port}\r\n"
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as client:
        client.sendall(f"GET {server.root} HTTP/1.1\r\n{own}Host: x\r\n\r\n".encode())
        assert client.recv(20).startswith(b"HTTP/1.0 403")


def test_the_server_refuses_other_methods(server: Server) -> None:
    for method in ("POST", "DELETE", "PUT", "OPTIONS", "TRACE"):
        assert ask(server, "", method=method)[0] == 501


def test_every_answer_says_what_browsers_must_not_do(server: Server) -> None:
    ticket = urlsplit(server.url_for_once()).path
    for path in (server.root, server.root + "blob/0", server.root + "none", "/", ticket):
        headers = dict(answer(server, path).getheaders())
        assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_an_address_for_once_leads_to_the_page_once(server: Server) -> None:
    lost, path = (urlsplit(server.url_for_once()).path for _ in range(2))
    assert server.root not in path
    assert answer(server, path, "example.org").status == 403
    found = answer(server, path)
    assert (found.status, found.getheader("Location")) == (303, server.root)
    assert answer(server, path).status == 403
    assert answer(server, lost).status == 403


def test_it_listens_on_the_loopback_address_only(server: Server) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"
    assert server.url.startswith("http://127.0.0.1:")


def test_every_server_has_a_token_of_its_own() -> None:
    servers = [Server("", Blobs()) for _ in range(2)]
    assert servers[0].root != servers[1].root
    for one in servers:
        one.server_close()


def test_the_server_refuses_a_port_that_is_taken(server: Server) -> None:
    with pytest.raises(LucioleError, match=rf"cannot serve on 127\.0\.0\.1:{server.server_port}"):
        Server("", Blobs(), server.server_port)


def connected(server: Server, stack: ExitStack, count: int) -> list[socket.socket]:
    """Connections that nobody says anything on."""
    address = "127.0.0.1", server.server_port
    return [
        stack.enter_context(socket.create_connection(address, timeout=30)) for _ in range(count)
    ]


def test_connections_that_ask_nothing_make_room(server: Server) -> None:
    before = threading.active_count()
    with ExitStack() as stack:
        silent = connected(server, stack, 3 * MOST_CONNECTIONS)
        assert silent[0].recv(1) == b"", "the first ones were hung up on"
        assert ask(server, "")[0] == 200
        assert silent[MOST_CONNECTIONS].recv(1) == b""
        while threading.active_count() > before + MOST_CONNECTIONS:
            time.sleep(0.02)  # threads end when they find that nobody is there


def test_who_asks_too_slowly_is_hung_up_on(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS_TO_ASK", 0.2)
    with ExitStack() as stack:
        slow, silent = connected(server, stack, 2)
        try:
            for _ in range(10_000):
                slow.sendall(b"G")
                time.sleep(0.01)
        except OSError:
            pass  # its end is closed
        else:
            pytest.fail("the server waited 100 seconds")
        assert silent.recv(1) == b""
        assert ask(server, "")[0] == 200


def test_who_knows_the_token_is_not_hung_up_on(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS_TO_ASK", 0.2)
    found = answer(server, server.root + "blob/1")
    time.sleep(0.5)
    with ExitStack() as stack:
        connected(server, stack, 2 * MOST_CONNECTIONS)
        assert len(found.read()) == LARGE


def test_the_server_refuses_more_connections_than_it_serves(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_CONNECTIONS", 4)
    taken = [answer(server, server.root + "blob/1") for _ in range(4)]
    with ExitStack() as stack:
        (one_more,) = connected(server, stack, 1)
        assert one_more.recv(1) == b""
    assert len(taken[0].read()) == LARGE
    for found in taken:
        found.close()


def test_the_program_prints_the_address_and_opens_one_for_once(
    tmp_path: Path, digits: Digits
) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part\nmv {opened}.part {opened}\n')
    browser.chmod(0o755)
    command = [sys.executable, "-m", "luciole", "view", str(digits.quantized)]
    environment = os.environ | {"BROWSER": str(browser)}
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
        preexec_fn=heed_interrupts,
        text=True,
    ) as program:
        assert program.stderr is not None
        words = program.stderr.readline().split()
        address = urlsplit(next(word for word in words if word.startswith("http://")))
        while not opened.exists():
            assert program.poll() is None
            time.sleep(0.02)
        once = urlsplit(opened.read_text().strip())
        assert once.netloc == address.netloc
        statuses = [
            status(address.netloc, path)
            for path in (once.path, once.path, address.path, "/", address.path + "blob/0")
        ]
        program.send_signal(signal.SIGINT)
        assert program.wait() == 0
    assert statuses == [303, 403, 200, 403, 200]


def status(netloc: str, path: str) -> int:
    """What a running program answers."""
    connection = http.client.HTTPConnection(netloc, timeout=30)
    connection.request("GET", path)
    return connection.getresponse().status


# ---------------------------------------------------------------------- a page that opens files
NUMBERS = itertools.count(100)


def opened(name: str, data: bytes, beside: bool) -> View:
    """The view of a file, whose page names it, and from which others are opened."""
    if data == b"bad":
        raise LucioleError(f"{name}: not a model")
    blobs = Blobs(next(NUMBERS))
    blobs.add(np.frombuffer(data, np.uint8))

    def next_one(other: str, data: bytes, beside: bool) -> View:
        return opened(f"{name}, {other}" if beside else other, data, beside)

    return View(f"{name} {beside}".encode(), b"{}", blobs, next_one, len(data))


@pytest.fixture
def opener() -> Iterator[Server]:
    """A server that opens files of up to 1,000 bytes: the page that it shows then names them."""
    running = Server("<p>page</p>", Blobs(), opener=opened, most_opened=1000)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


class Given(NamedTuple):
    """What the server said to a file, and where it shows it."""

    status: int
    body: bytes
    place: str


def give(
    server: Server, path: str, body: bytes = b"model", headers: dict[str, str] | None = None
) -> Given:
    """Give the server a file."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.request("POST", path, body, headers or {})
    found = connection.getresponse()
    place = found.getheader("Location", "").removeprefix(server.root)
    return Given(found.status, found.read(), place)


def test_a_file_is_opened_and_its_page_and_arrays_are_there(opener: Server) -> None:
    found = give(opener, opener.root + "open?name=a%20b.circle")
    assert found[:2] == (201, b"{}")
    assert ask(opener, found.place) == (200, b"a b.circle False")
    numbers = [n for n in range(100, 200) if ask(opener, f"{found.place}blob/{n}")[0] == 200]
    assert len(numbers) == 1
    assert ask(opener, f"{found.place}blob/{numbers[0]}") == (200, b"model")
    assert ask(opener, f"blob/{numbers[0]}") == (200, b"model"), "numbers do not come twice"
    own = f"http://127.0.0.1:{opener.server_port}"
    beside = give(opener, opener.root + found.place + "compare?name=b", headers={"Origin": own})
    assert ask(opener, beside.place) == (200, b"a b.circle, b True")


def test_pages_of_one_server_do_not_change_each_other(opener: Server) -> None:
    mine, yours = (give(opener, opener.root + f"open?name={name}") for name in "ab")
    assert mine.place != yours.place
    beside = give(opener, opener.root + mine.place + "compare?name=c")
    shown = [ask(opener, place)[1] for place in (mine.place, yours.place, beside.place, "")]
    assert shown == [b"a False", b"b False", b"a, c True", b"<p>page</p>"]


def test_the_server_forgets_the_views_that_were_not_used_for_longest(opener: Server) -> None:
    places = [give(opener, opener.root + "open?name=x").place for _ in range(MOST_VIEWS)]
    assert ask(opener, places[0])[0] == 200
    places.append(give(opener, opener.root + "open?name=y").place)
    statuses = [ask(opener, place)[0] for place in ("", *places)]
    assert statuses == [200, 200, 404, *[200] * (MOST_VIEWS - 1)]
    assert give(opener, opener.root + places[1] + "open").status == 404


def test_the_server_keeps_so_many_bytes_of_files_and_the_newest(
    opener: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_KEPT", 1000)
    places = [give(opener, opener.root + "open", bytes(n)).place for n in (300, 600, 500, 1000)]
    assert [ask(opener, place)[0] for place in places] == [404, 404, 404, 200]
    places = [give(opener, opener.root + "open", bytes(n)).place for n in (300, 600, 100)]
    assert [ask(opener, place)[0] for place in places] == [200, 200, 200]


@pytest.mark.parametrize("place", ["7/", "1", "0x1/", "-1/", "%D9%A1/", "9" * 40 + "/", "1/other"])
def test_the_server_refuses_views_that_there_are_not(opener: Server, place: str) -> None:
    give(opener, opener.root + "open?name=a")
    assert ask(opener, place)[0] == 404


def test_who_is_not_the_page_opens_nothing(opener: Server) -> None:
    cases: list[tuple[str, dict[str, str]]] = [
        ("/open?name=x", {}),
        ("/" + "x" * 32 + "/open?name=x", {}),
        (opener.root + "open", {"Origin": "http://example.org"}),
        (opener.root + "open", {"Origin": "null"}),
        (opener.root + "open", {"Host": "example.org"}),
    ]
    for path, headers in cases:
        assert give(opener, path, headers=headers).status == 403
    assert give(opener, opener.root + "other").status == 404
    assert ask(opener, "1/")[0] == 404


def test_a_file_that_is_refused_changes_nothing(opener: Server) -> None:
    found = give(opener, opener.root + "open?name=x.circle", b"bad")
    assert found == (422, b"x.circle: not a model\n", "")
    assert give(opener, opener.root + "open", bytes(1001)).status == 413
    for length in ("-1", "1e3", "9" * 40, "\u0661"):
        with socket.create_connection(("127.0.0.1", opener.server_port), timeout=30) as client:
            host = f"Host: 127.0.0.1:{opener.server_port}"
            text = f"POST {opener.root}open HTTP/1.1\r\n{host}\r\nContent-Length: {length}\r\n\r\n"
            client.sendall(text.encode())
            assert client.recv(12)[9:] in (b"411", b"413")
    assert ask(opener, "1/")[0] == 404


def test_a_file_that_ends_early_is_not_opened(opener: Server) -> None:
    with socket.create_connection(("127.0.0.1", opener.server_port), timeout=30) as client:
        host = f"Host: 127.0.0.1:{opener.server_port}"
        text = f"POST {opener.root}open HTTP/1.1\r\n{host}\r\nContent-Length: 10\r\n\r\nhalf"
        client.sendall(text.encode())
        client.shutdown(socket.SHUT_WR)
        assert client.recv(10) == b""
    assert ask(opener, "1/")[0] == 404
