"""Lets the live view's own page talk to its server, and no other: a page of another site must not move the robot.

A browser lets any open page connect to a server on this machine. It says whose page that is in `Origin`, and under
which name it reached the server in `Host`. Both are checked before the server looks at a request:

- `Host` must be a number (an IP address), `localhost`, a name of this machine, or one that the user allows. A site
  whose name is made to point here (DNS rebinding) comes with its own name.
- A WebSocket must come from a page of the server itself: `Origin` has the name and port of `Host`, or a name that the
  user allows, as behind a proxy.
"""

import contextlib
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from mbjax.errors import ModelError

STARTING = threading.Lock()  # `serve` is a name of the whole process while a server starts
PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


class Place(NamedTuple):
    """Name and port of a server, as a header gives them."""

    name: str
    port: int | None


@contextlib.contextmanager
def own_origin_only(allow_hosts: Iterable[str] = ()) -> Iterator[None]:
    """Makes the websockets server that starts within the block refuse requests of other origins.

    Raises `ModelError` if none started in the way that is guarded: an open server is not left behind unseen.
    """
    import websockets.asyncio.server as server

    allowed = frozenset(name.lower().rstrip(".") for name in allow_hosts)
    guarded: list[bool] = []

    def serve(*args: Any, process_request: Callable | None = None, **options: Any) -> Any:
        guarded.append(True)
        return original(*args, process_request=checked(process_request, allowed), **options)

    with STARTING:
        original, server.serve = server.serve, serve  # pyright: ignore[reportPrivateImportUsage]
        try:
            yield
        finally:
            server.serve = original  # pyright: ignore[reportPrivateImportUsage]
    if not guarded:
        raise ModelError(
            "Viewer: this version of viser starts its server in a way that mbjax cannot guard against other web pages. "
            "Install another version of viser."
        )


def checked(inner: Callable | None, allowed: frozenset[str]) -> Callable:
    """The server's handler of requests, behind the check."""

    def process_request(connection: Any, request: Any) -> Any:
        refusal = find_refusal(request.headers, allowed)
        if refusal is not None:
            return connection.respond(HTTPStatus.FORBIDDEN, refusal + "\n")
        return None if inner is None else inner(connection, request)

    return process_request


def find_refusal(headers: Any, allowed: frozenset[str]) -> str | None:
    """Why a request is refused, and the way out; None if it is not. `headers` has `get_all(name)`."""
    hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
    host = as_place(f"http://{hosts[0]}") if len(hosts) == 1 else None
    if host is None:
        return "mbjax: a request needs one Host header."
    if not is_own_name(host.name, allowed):
        return (
            f"mbjax: this server does not answer to the name {host.name!r}. Open the address that mbjax prints, or "
            f"allow the name: Viewer(..., allow_hosts=[{host.name!r}]), mbjax view --allow-host {host.name}."
        )
    if not origins:
        is_socket = bool(headers.get_all("Upgrade"))
        return "mbjax: a WebSocket needs an Origin header, as browsers send." if is_socket else None
    origin = as_place(origins[0]) if len(origins) == 1 else None
    if origin is not None and (origin == host or origin.name in allowed):
        return None
    return (
        f"mbjax: only a page of this server may connect to it, not one of {', '.join(origins)!r}. Open the address "
        "that mbjax prints; where a proxy serves the page under another name, allow it: Viewer(..., "
        "allow_hosts=[name]), mbjax view --allow-host NAME."
    )


def as_place(url: str) -> Place | None:
    """Name and port of an http or https address without anything else; None for other text, like "null"."""
    try:
        parts: SplitResult = urlsplit(url)
        name, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in PORTS or not name or parts.username is not None or parts.path or parts.query:
        return None
    return Place(name.rstrip("."), PORTS[parts.scheme] if port is None else port)


def is_own_name(name: str, allowed: frozenset[str]) -> bool:
    """Whether a name can only mean this server: a number, this machine, or an allowed name."""
    if name == "localhost" or name.endswith(".localhost") or name in allowed:
        return True
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(name.partition("%")[0])
        return True
    own = {socket.gethostname().lower(), socket.getfqdn().lower()}
    return name in own or name.removesuffix(".local") in own
