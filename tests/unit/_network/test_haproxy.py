# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._network import haproxy
from ansible_collections.novalite.cloud.plugins.module_utils._network.haproxy import Proxy, Upstream
from tests.support.patience import GENEROUS

UUID = "5f0c6ad8-5e8f-4ef5-a0d6-2f0d1ad1b5c2"
KEY = b"\x00\xffkey" * 8


def text(proxy: Proxy, url: str = "http://192.0.2.10:8775", place: int | None = 7) -> str:
    return haproxy.config(proxy, haproxy.parse_upstream(url), "hv1.example", KEY, place)


@pytest.mark.parametrize(
    ("url", "upstream"),
    [
        ("http://192.0.2.10:8775", Upstream("192.0.2.10", 8775)),
        ("http://192.0.2.10:8775/", Upstream("192.0.2.10", 8775)),
        ("http://controller", Upstream("controller", 80)),
        ("https://metadata.example.com", Upstream("metadata.example.com", 443, tls=True)),
        ("http://[2001:db8::1]:8775", Upstream("2001:db8::1", 8775)),
    ],
)
def test_where_the_service_is(url: str, upstream: Upstream) -> None:
    assert haproxy.parse_upstream(url) == upstream


@pytest.mark.parametrize(
    "url",
    [
        "",
        "192.0.2.10:8775",
        "ftp://192.0.2.10",
        "http://",
        "http://a:0",
        "http://a:99999",
        "http://a:b",
        "http://a/b",
        "http://a?b",
        "http://a#b",
        "http://user:password@a",
        "http://a b",
        "http://a\n    bind",
        "http://-a",
        "http://a..b",
        "http://[2001:db8::1%eth0]",
        "http://[x]",
        "http://a,b",
        "http://" + "a" * 254,
    ],
)
def test_what_is_no_url_of_a_service(url: str) -> None:
    with pytest.raises(NovaliteError, match="is not of the form"):
        haproxy.parse_upstream(url)


@pytest.mark.parametrize(
    "changes",
    [
        {"bridge": ""},
        {"bridge": "b" * 16},
        {"bridge": "../x"},
        {"bridge": "br 100"},
        {"bridge": "br100\n"},
        {"namespace": "nova/br100"},
        {"namespace": "..", "bridge": "br100"},
        {"namespace": "a b"},
        {"network": "x"},
        {"network": ""},
    ],
)
def test_what_is_no_network(changes: dict[str, t.Any]) -> None:
    with pytest.raises(NovaliteError):
        haproxy.parse([{"bridge": "br100", "namespace": None, "network": UUID, **changes}])


def test_a_bridge_that_is_given_twice() -> None:
    with pytest.raises(NovaliteError, match="twice"):
        haproxy.parse([{"bridge": "br100", "network": UUID}] * 2)


def test_what_is_written_is_read_again() -> None:
    for proxy in (Proxy("br100", None, UUID), Proxy("br10000", "nova-br10000", UUID)):
        assert haproxy.read(text(proxy)) == proxy
        assert haproxy.read(text(proxy, place=None)) == proxy
    for other in ("", "# novalite: ", "# novalite: []\n", '# novalite: {"bridge": "a"}\n', "global\n"):
        assert haproxy.read(other) is None


def test_people_see_that_a_key_changed_and_not_the_key() -> None:
    proxy = Proxy("br100", None, UUID)
    written, other = text(proxy), text(proxy).replace("AP9rZXk", "BP9rZXk")
    assert written != other
    assert "AP9rZXk" not in "\n".join(haproxy.shown(written))
    assert haproxy.shown(written) != haproxy.shown(other)
    assert haproxy.shown(written) == haproxy.shown(text(proxy))


def test_a_proxy_is_tied_to_its_network() -> None:
    assert "bind 169.254.169.254:80 interface br100\n" in text(Proxy("br100", None, UUID))
    assert "bind 169.254.169.254:80 namespace nova-br10000\n" in text(Proxy("br10000", "nova-br10000", UUID))


@pytest.mark.root
@pytest.mark.parametrize("url", ["http://192.0.2.10:8775", "https://localhost", "http://[2001:db8::1]:8775"])
def test_haproxy_takes_it(url: str, tmp_path: pathlib.Path) -> None:
    conf = tmp_path / "haproxy.cfg"
    conf.write_text(text(Proxy("lo", None, UUID), url))
    done = subprocess.run(["/usr/sbin/haproxy", "-c", "-f", str(conf)], check=False, capture_output=True, text=True)
    assert (done.returncode, "WARNING" in done.stderr) == (0, False), done.stderr


_SERVICE = """
import http.server

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = "".join(sorted(f"{name.lower()}: {value}\\n" for name, value in self.headers.items())).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_GET

http.server.ThreadingHTTPServer(("127.0.0.1", 8775), Handler).serve_forever()
"""

_GUEST = """
import http.client
import socket
import time

TOKEN = "/latest/api/token"

def ask(method, path, headers={}):
    connection = http.client.HTTPConnection("169.254.169.254", timeout=5)
    connection.request(method, path, None, headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()

def put(length, body):
    # head and body at once: haproxy answers on the head alone and closes, which a second write would meet
    head = f"PUT {TOKEN} HTTP/1.1\\r\\nHost: 169.254.169.254\\r\\n{length}\\r\\n\\r\\n"
    with socket.create_connection(("169.254.169.254", 80), timeout=5) as guest:
        guest.sendall((head + body).encode())
        answer = http.client.HTTPResponse(guest)
        answer.begin()
        return answer.status

for _ in range(100):
    try:
        if ask("GET", "/")[0] == 200:
            break
    except OSError:
        pass
    time.sleep(0.1)
print(
    ask("GET", "/latest/")[0], ask("PUT", TOKEN)[0], ask("PUT", "/latest/user-data")[0], ask("POST", TOKEN)[0],
    ask("PUT", TOKEN, {"X-Forwarded-For": "192.0.2.1"})[0], put("Content-Length: 4", "text"),
    put("Transfer-Encoding: chunked", "4\\r\\ntext\\r\\n0\\r\\n\\r\\n"),
)
print(ask("GET", "/latest/", {"X-Aws-Ec2-Metadata-Token": "abc", "X-Novalite-Host": "other", "X-Other": "x"})[1])
"""


@pytest.mark.root
def test_what_a_guest_may_ask(tmp_path: pathlib.Path) -> None:
    """haproxy itself, in a network namespace where the guest is the host's own loopback."""
    (tmp_path / "haproxy.cfg").write_text(text(Proxy("lo", None, UUID), "http://127.0.0.1:8775"))
    (tmp_path / "service.py").write_text(_SERVICE)
    (tmp_path / "guest.py").write_text(_GUEST)
    (tmp_path / "guest").write_text(
        f"""set -eu
ip link set lo up
ip addr add 169.254.169.254/32 dev lo
{sys.executable} {tmp_path}/service.py 2>/dev/null &
service=$!
haproxy -db -f {tmp_path}/haproxy.cfg >/dev/null 2>&1 &
trap 'kill $service $!' EXIT
{sys.executable} {tmp_path}/guest.py
"""
    )
    environ = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    done = subprocess.run(
        ["unshare", "--net", "bash", str(tmp_path / "guest")],
        check=True,
        capture_output=True,
        text=True,
        timeout=GENEROUS,
        env=environ,
    )
    codes, *headers = done.stdout.splitlines()
    assert codes.split() == ["200", "200", "405", "405", "403", "413", "413"]
    header_by_name = dict(line.split(": ", 1) for line in headers if line)
    assert header_by_name["x-aws-ec2-metadata-token"] == "abc" and header_by_name["x-novalite-host"] == "hv1.example"
    assert "x-other" not in header_by_name
