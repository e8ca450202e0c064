"""The live view answers its own page, and refuses other names and other sites' pages."""

import socket
from http.client import HTTPConnection

import pytest
import websockets.asyncio.server
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import mbjax
from mbjax.visualization.live.own_origin import own_origin_only


@pytest.fixture(scope="module")
def viewer():
    model = mbjax.load(mbjax.reference_models.path("pendulum"))
    with mbjax.Viewer(model, port=0, allow_hosts=["hub.example.org"]) as viewer:
        yield viewer


def status_of_page(port: int, host: str) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=10.0)
    connection.request("GET", "/", headers={"Host": host})
    response = connection.getresponse()
    response.read()
    return response.status


def status_of_socket(port: int, host: str, origin: str | None) -> int:
    """101 if the WebSocket opens, else the status of the refusal."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=10.0)
    try:
        with connect(f"ws://{host}/", sock=sock, origin=origin, open_timeout=10.0):  # pyright: ignore[reportArgumentType]
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code if b"mbjax: " in refused.response.body else 0


def test_only_its_own_names_open_the_page(viewer) -> None:
    port = viewer.server.get_port()
    own = (f"127.0.0.1:{port}", f"localhost:{port}", "localhost:9000", f"[::1]:{port}", f"192.168.1.7:{port}")
    for host in (*own, socket.gethostname(), "hub.example.org"):
        assert status_of_page(port, host) == 200, host
    for host in (
        "evil.example.com",
        f"evil.example.com:{port}",
        f"127.0.0.1.evil.com:{port}",
        "localhost@evil.com",
        "",
    ):
        assert status_of_page(port, host) == 403, host


def test_only_its_own_page_opens_a_web_socket(viewer) -> None:
    port = viewer.server.get_port()
    host = f"localhost:{port}"
    for origin in (f"http://{host}", "https://hub.example.org"):
        assert status_of_socket(port, host, origin) == 101, origin
    others = (
        "http://evil.example.com",
        "http://localhost:3000",
        f"http://localhost:{port}.evil.com",
        "null",
        "file://",
    )
    for origin in (*others, f"http://127.0.0.1:{port}", None):
        assert status_of_socket(port, host, origin) == 403, origin
    assert status_of_socket(port, f"evil.example.com:{port}", f"http://evil.example.com:{port}") == 403


def test_a_server_that_cannot_be_guarded_is_an_error() -> None:
    before = websockets.asyncio.server.serve
    with pytest.raises(mbjax.ModelError, match="another version of viser"), own_origin_only():
        pass
    assert websockets.asyncio.server.serve is before
