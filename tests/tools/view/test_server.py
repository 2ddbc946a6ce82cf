"""The server: its own page and arrays, to this machine, under its own name."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from luciole.ir import LucioleError
from luciole.tools.view.blobs import Blobs
from luciole.tools.view.server import Server


@pytest.fixture
def server() -> Iterator[Server]:
    blobs = Blobs()
    blobs.add(np.arange(5, dtype=np.float32))
    running = Server("<p>page</p>", blobs)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


def ask(
    server: Server, path: str, host: str | None = None, method: str = "GET"
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    headers = {} if host is None else {"Host": host}
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_it_answers_with_its_page_and_arrays(server: Server) -> None:
    assert ask(server, "/") == (200, b"<p>page</p>")
    assert ask(server, "/", f"localhost:{server.server_port}")[0] == 200
    status, content = ask(server, "/blob/0")
    assert status == 200
    np.testing.assert_array_equal(np.frombuffer(content, "<f4"), np.arange(5))


@pytest.mark.parametrize(
    "path",
    [
        "/blob/1",
        "/blob/-1",
        "/blob/0x0",
        "/blob/",
        "/blob/%D9%A0",
        "/../setup.cfg",
        "/index.html",
        "/?x",
    ],
)
def test_the_server_refuses_everything_else(server: Server, path: str) -> None:
    assert ask(server, path)[0] == 404


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "localhost:1", "127.0.0.1:80@x", ""])
def test_the_server_refuses_other_names(server: Server, host: str) -> None:
    assert ask(server, "/", host)[0] == 403
    assert ask(server, "/blob/0", host)[0] == 403


def test_the_server_refuses_other_methods(server: Server) -> None:
    assert ask(server, "/", method="POST")[0] == 501
    assert ask(server, "/blob/0", method="DELETE")[0] == 501


def test_it_listens_on_the_loopback_address_only(server: Server) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"
    assert server.url.startswith("http://127.0.0.1:")


def test_the_server_refuses_a_port_that_is_taken(server: Server) -> None:
    with pytest.raises(LucioleError, match=rf"cannot serve on 127\.0\.0\.1:{server.server_port}"):
        Server("", Blobs(), server.server_port)
