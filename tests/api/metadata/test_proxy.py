# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole way for real: guests in network namespaces, haproxy on their host, gunicorn, the ledger."""

from __future__ import annotations

import contextlib
import http.client
import os
import pathlib
import shutil
import subprocess
import sys
import time
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._guest.signature import host_key
from ansible_collections.novalite.cloud.plugins.module_utils._host import locks
from ansible_collections.novalite.cloud.plugins.module_utils._network import haproxy, metadata_proxy, users
from ansible_collections.novalite.cloud.plugins.module_utils._network.process import Server
from tests.api.conftest import Cloud, Network
from tests.support.patience import GENEROUS
from tests.unit.conftest import entered, ip

pytestmark = pytest.mark.root

SERVICE = "127.0.0.1:8775"  # in the host's namespace
BRIDGES = ("nlmbr0", "nlmbr1", "nlmbr2")  # the last one's network is isolated


class Lab(t.NamedTuple):
    """A host with two bridges of its own and one in a namespace; a guest on each of them, all at 10.99.x.5."""

    host: str
    namespace: str
    guests: list[str]


def address(number: int) -> str:
    """Of the guest on the bridge of this number: the isolated network has the first one's addresses."""
    return "10.99.1.5" if number == 1 else "10.99.0.5"


def connect(lab: Lab, number: int) -> None:
    """Give the guest of this number its cable."""
    inside, bridge, guest = lab.namespace if number == 2 else lab.host, BRIDGES[number], lab.guests[number]
    gateway = f"{address(number)[:-1]}1"
    ip("-n", inside, "link", "add", bridge, "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
    ip("-n", inside, "addr", "add", f"{gateway}/24", "dev", bridge)
    ip("-n", inside, "link", "set", bridge, "up")
    ip(
        "-n",
        inside,
        "link",
        "add",
        "tap0" if number == 2 else f"tap{number}",
        "type",
        "veth",
        "peer",
        "name",
        "eth0",
        "netns",
        guest,
    )
    ip("-n", inside, "link", "set", "tap0" if number == 2 else f"tap{number}", "master", bridge, "up")
    ip("-n", guest, "addr", "add", f"{address(number)}/24", "dev", "eth0")
    ip("-n", guest, "link", "set", "eth0", "up")
    ip("-n", guest, "route", "add", "default", "via", gateway)


@pytest.fixture
def lab() -> t.Iterator[Lab]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if shutil.which("haproxy", path="/usr/sbin:/usr/bin") is None:
        pytest.fail("haproxy is not installed: tools/bootstrap installs it", pytrace=False)
    stem = f"nlm{os.getpid()}"
    made = Lab(f"{stem}-host", f"{stem}-nova", [f"{stem}-{number}" for number in range(3)])
    try:
        for name in (made.host, made.namespace, *made.guests):
            ip("netns", "add", name)
        ip("-n", made.host, "link", "set", "lo", "up")
        for number in range(3):
            connect(made, number)
        yield made
    finally:
        for name in (made.host, made.namespace, *made.guests):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


class Host:
    """metadata_proxy on the lab's host."""

    def __init__(self, lab: Lab, networks: list[Network], secret: bytes, directory: pathlib.Path) -> None:
        self.lab = lab
        self.directory = directory
        self.secret = secret
        self.proxies = [
            haproxy.Proxy(bridge, lab.namespace if number == 2 else None, networks[number].uuid)
            for number, bridge in enumerate(BRIDGES)
        ]

    def ensure(self, check_mode: bool = False, url: str = f"http://{SERVICE}") -> dict[str, t.Any]:
        service = metadata_proxy.Service(haproxy.parse_upstream(url), "hv1", host_key(self.secret, "hv1"))
        with entered(self.lab.host):
            return metadata_proxy.ensure(self.proxies, service, check_mode, str(self.directory))

    def remove(self, *bridges: str, check_mode: bool = False) -> dict[str, t.Any]:
        with entered(self.lab.host):
            return metadata_proxy.remove(bridges, check_mode, str(self.directory))

    def server(self, bridge: str) -> Server:
        place = self.directory / "metadata" / bridge
        return Server("haproxy", str(place / "haproxy.cfg"), str(place / "pid"))

    def addresses(self, namespace: str) -> int:
        done = subprocess.run(["ip", "-n", namespace, "addr", "show", "dev", "lo"], check=True, capture_output=True)
        return done.stdout.count(b"169.254.169.254/32")


@pytest.fixture
def networks(cloud: Cloud) -> list[Network]:
    cloud.host("hv1")
    project = cloud.project("demo")
    made = [
        cloud.network("a", "10.99.0.0/24", isolated=False),
        cloud.network("b", "10.99.1.0/24", isolated=False),
        cloud.network("c", "10.99.0.0/24", isolated=True),
    ]
    for number, network in enumerate(made):
        cloud.instance(project, f"guest-{number}", "hv1", [(network, address(number))], user_data=b"told %d" % number)
    return made


@pytest.fixture
def host(
    lab: Lab, cloud: Cloud, networks: list[Network], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> t.Iterator[Host]:
    monkeypatch.setattr(locks.locked.__wrapped__, "__defaults__", (60.0, str(tmp_path / "locks")))  # type: ignore[attr-defined]  # a wrapped function has it
    monkeypatch.setattr(users, "domains", lambda uri: {})
    made = Host(lab, networks, cloud.secret, tmp_path)
    yield made
    made.remove(*BRIDGES)


@pytest.fixture
def service(lab: Lab, cloud: Cloud) -> t.Iterator[None]:
    """gunicorn in the host's namespace, as a controller that is the hypervisor, too."""
    command = ["ip", "netns", "exec", lab.host, sys.executable, "-m", "api", "serve-metadata", "--bind", SERVICE]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "NOVALITE_HOME": str(cloud.home),
        "NOVALITE_WORKERS": "1",
    }
    process = subprocess.Popen(command, env=environment)
    try:
        deadline = time.monotonic() + GENEROUS
        while ask(lab.host, "127.0.0.1", "/healthz", port=8775)[0] != 200:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(GENEROUS)


def ask(
    place: str,
    where: str,
    path: str,
    headers: t.Mapping[str, str] | None = None,
    method: str = "GET",
    port: int = 80,
    source: str = "",
) -> tuple[int, str]:
    """Status and body of what `place` (a namespace) gets; status 0 when nobody answers."""
    connection = http.client.HTTPConnection(where, port, timeout=5, source_address=(source, 0) if source else None)
    with entered(place), contextlib.closing(connection):
        try:
            connection.request(method, path, headers=dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return 0, ""


def asked(lab: Lab, number: int, path: str, **more: t.Any) -> tuple[int, str]:
    return ask(lab.guests[number], haproxy.ADDRESS, path, **more)


def test_each_guest_is_told_its_own(lab: Lab, host: Host, service: None) -> None:
    assert host.ensure()["changed"]
    for number in range(3):
        assert asked(lab, number, "/latest/meta-data/instance-id") == (200, f"i-{number + 1:08x}")
        assert asked(lab, number, "/latest/user-data") == (200, f"told {number}")
        assert asked(lab, number, "/latest/meta-data/none")[0] == 404
        assert asked(lab, number, "/latest/user-data", method="POST")[0] == 405


def test_what_a_guest_says_about_itself_counts_for_nothing(
    lab: Lab, host: Host, service: None, cloud: Cloud, networks: list[Network]
) -> None:
    host.ensure()
    # even the headers that are right for another guest, as only its host could have made them
    stolen = cloud.headers("hv1", networks[1], address(1))
    for headers in (
        stolen,
        {name.replace("-", "_"): value for name, value in stolen.items()},
        {name.lower(): value for name, value in stolen.items()},
        {"Forwarded": "for=10.99.1.5", "X-Real-IP": "10.99.1.5", "Host": "10.99.1.5"},
        {"Connection": "close, X-Novalite-Signature, X-Forwarded-For"},
    ):
        assert asked(lab, 2, "/latest/meta-data/instance-id", headers=headers) == (200, "i-00000003")
    # an address that nobody has
    ip("-n", lab.guests[0], "addr", "flush", "dev", "eth0")
    ip("-n", lab.guests[0], "addr", "add", "10.99.0.77/24", "dev", "eth0")
    ip("-n", lab.guests[0], "route", "add", "default", "via", "10.99.0.1")
    assert asked(lab, 0, "/latest/meta-data/instance-id", headers=stolen) == (404, "")
    # another network's guest's address, asked from here
    ip("-n", lab.guests[0], "addr", "add", "10.99.1.5/32", "dev", "lo")
    assert asked(lab, 0, "/latest/meta-data/instance-id", source="10.99.1.5") == (404, "")
    assert asked(lab, 1, "/latest/meta-data/instance-id") == (200, "i-00000002")


def test_a_run_changes_what_is_to_be_changed_and_nothing_else(lab: Lab, host: Host) -> None:
    planned = host.ensure(check_mode=True)
    assert planned["changed"] and not (host.directory / "metadata").exists()
    made = host.ensure()
    assert made["diff"] == planned["diff"]
    assert set(made["diff"]["after"]) == set(BRIDGES)
    assert host_key(host.secret, "hv1").hex() not in str(made) and "hmac(sha256,key " in str(made)
    pids = [host.server(bridge).pid() for bridge in BRIDGES]
    assert None not in pids
    assert host.ensure() == {"changed": False} == host.ensure(check_mode=True)
    for bridge in BRIDGES:
        conf = host.directory / "metadata" / bridge / "haproxy.cfg"
        assert conf.stat().st_mode & 0o777 == 0o600
        assert conf.parent.stat().st_mode & 0o777 == 0o700

    host.server(BRIDGES[0]).stop()  # as if it had crashed
    assert set(host.ensure()["diff"]["before"]) == {BRIDGES[0]}
    assert [host.server(bridge).pid() for bridge in BRIDGES][1:] == pids[1:]

    ip("-n", lab.host, "addr", "del", "169.254.169.254/32", "dev", "lo")
    assert host.ensure()["changed"] and host.addresses(lab.host) == 1

    moved = host.ensure(url="http://127.0.0.1:8776")
    assert set(moved["diff"]["after"]) == set(BRIDGES)
    assert host.ensure(url="http://127.0.0.1:8776") == {"changed": False}
    assert asked(lab, 0, "/")[0] == 503


def test_a_namespace_that_was_made_again(lab: Lab, host: Host, service: None) -> None:
    host.ensure()
    ip("netns", "del", lab.namespace)
    ip("netns", "add", lab.namespace)
    subprocess.run(["ip", "-n", lab.guests[2], "link", "del", "eth0"], check=False, capture_output=True)
    connect(lab, 2)
    assert set(host.ensure()["diff"]["after"]) == {BRIDGES[2]}
    assert asked(lab, 2, "/latest/user-data") == (200, "told 2")


def test_the_end(lab: Lab, host: Host) -> None:
    host.ensure()
    assert host.remove(*BRIDGES, check_mode=True)["changed"]
    assert host.ensure() == {"changed": False}
    gone = host.remove(BRIDGES[0])
    assert set(gone["diff"]["before"]) == {BRIDGES[0]} and gone["diff"]["after"] == {BRIDGES[0]: {}}
    assert host.addresses(lab.host) == 1, "the other bridge's guests still ask there"
    assert host.remove(BRIDGES[1], BRIDGES[2])["changed"]
    assert host.addresses(lab.host) == host.addresses(lab.namespace) == 0
    assert not (host.directory / "metadata").exists()
    assert all(host.server(bridge).pid() is None for bridge in BRIDGES)
    assert host.remove(*BRIDGES) == {"changed": False, "kept": {}}


def test_nothing_is_half_made(lab: Lab, host: Host) -> None:
    ip("-n", lab.host, "link", "del", BRIDGES[1])
    with pytest.raises(NovaliteError, match=f"no bridge {BRIDGES[1]}"):
        host.ensure()
    assert host.server(BRIDGES[1]).pid() is None
    assert not (host.directory / "metadata" / BRIDGES[1]).exists()
    # and what was there before is there again
    host.proxies = [host.proxies[0]]
    assert host.ensure() == {"changed": False}
    with pytest.raises(NovaliteError, match="haproxy"):
        host.ensure(url="http://no.such.host.invalid:80")
    assert host.ensure() == {"changed": False}
