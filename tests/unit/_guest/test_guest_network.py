# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A guest's network configuration and password: which file, which words, and that nothing else changes."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import typing as t

import pytest
import yaml

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._guest import guest_network, inject
from ansible_collections.novalite.cloud.plugins.module_utils._guest.guest_network import Nic, nics_of
from ansible_collections.novalite.cloud.plugins.module_utils._guest.guest_root import GuestRoot
from ansible_collections.novalite.cloud.plugins.module_utils._guest.inject import Request, apply, describe, plan

UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
HASH = "$6$saltsalt$" + "a" * 86

STATIC = {
    "mac": "FA:16:3E:00:01:01",
    "name": "eth0",
    "ipv4": {"address": "10.30.1.9", "prefix": 22, "gateway": "10.30.0.1"},
    "ipv6": {"address": "fd00::9", "prefix": 64, "gateway": "fd00::1"},
    "dns": ["10.30.0.53", "fd00::53"],
    "mtu": 1450,
}
DHCP = {"mac": "fa:16:3e:00:01:02", "name": "eth1", "ipv4": {"address": "10.20.0.5", "prefix": 24}, "dhcp": True}
NICS = nics_of({"nics": [STATIC, DHCP]})

INTERFACES = """\
# Written by novalite: the addresses of this instance.
auto lo
iface lo inet loopback

auto eth0
iface eth0 inet static
    address 10.30.1.9
    netmask 255.255.252.0
    gateway 10.30.0.1
    mtu 1450
    dns-nameservers 10.30.0.53 fd00::53
iface eth0 inet6 static
    address fd00::9
    netmask 64
    gateway fd00::1
    mtu 1450

auto eth1
iface eth1 inet dhcp
"""


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "etc/systemd/network").mkdir(parents=True)  # Debian's systemd brings it along
    return tmp_path


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="files are given to root")


def written(root: pathlib.Path, nics: tuple[Nic, ...] = NICS) -> dict[str, str]:
    """Path -> content of what an injection of `nics` writes; a second one writes nothing."""
    request = Request(UUID, nics=nics)
    with GuestRoot(str(root)) as guest:
        steps = plan(guest, request)
        apply(guest, steps)
        assert plan(guest, request) == []
    return {step.path: (root / step.path[1:]).read_text() for step in steps}


@needs_root
def test_ifupdown(root: pathlib.Path) -> None:
    (root / "etc/network").mkdir()
    assert written(root) == {"/etc/network/interfaces": INTERFACES}


@needs_root
def test_ifupdown_without_resolvconf(root: pathlib.Path) -> None:
    (root / "etc/network").mkdir()
    assert written(root, NICS[:1])["/etc/resolv.conf"] == "nameserver 10.30.0.53\nnameserver fd00::53\n"
    (root / "etc/resolv.conf").unlink()
    (root / "etc/resolv.conf").symlink_to("../run/systemd/resolve/stub-resolv.conf")
    assert written(root, NICS[:1]) == {}


@needs_root
@pytest.mark.skipif(not shutil.which("busybox"), reason="needs busybox")
def test_busybox_understands_the_interfaces_file(root: pathlib.Path) -> None:
    (root / "etc/network").mkdir()
    written(root)
    said = subprocess.run(
        ["busybox", "ifup", "-n", "-v", "-a", "-i", str(root / "etc/network/interfaces")],
        check=True,
        capture_output=True,
        text=True,
    )
    lines = (said.stdout + said.stderr).splitlines()
    for word in (
        "ip addr add 10.30.1.9/22",
        "ip link set mtu 1450",
        "via 10.30.0.1 dev eth0",
        "ip addr add fd00::9/64",
        "via fd00::1 dev eth0",
        "udhcpc",
    ):
        assert any(word in line for line in lines), (word, lines)


@needs_root
def test_netplan_comes_first(root: pathlib.Path) -> None:
    for name in ("network", "netplan"):
        (root / "etc" / name).mkdir()
    ((path, text),) = written(root).items()
    assert path == "/etc/netplan/90-nova.yaml" and (root / path[1:]).stat().st_mode & 0o777 == 0o600
    assert yaml.safe_load(text) == {
        "network": {
            "version": 2,
            "ethernets": {
                "00-nova-eth0": {
                    "match": {"macaddress": "fa:16:3e:00:01:01"},
                    "dhcp4": False,
                    "mtu": 1450,
                    "addresses": ["10.30.1.9/22", "fd00::9/64"],
                    "routes": [{"to": "0.0.0.0/0", "via": "10.30.0.1"}, {"to": "::/0", "via": "fd00::1"}],
                    "nameservers": {"addresses": ["10.30.0.53", "fd00::53"]},
                },
                "00-nova-eth1": {"match": {"macaddress": "fa:16:3e:00:01:02"}, "dhcp4": True},
            },
        }
    }


SEVERAL = nics_of({"nics": [{**STATIC, "more_ipv4": [{"address": "10.30.1.10", "prefix": 22}]}]})


@needs_root
def test_further_addresses_are_in_every_form(root: pathlib.Path) -> None:
    files = written(root, SEVERAL)
    assert (
        "\nAddress=10.30.1.9/22\nGateway=10.30.0.1\nAddress=10.30.1.10/22\nAddress=fd00::9/64\n"
        in (files["/etc/systemd/network/00-nova-eth0.network"])
    )
    (root / "etc/network").mkdir()
    assert (
        "\niface eth0 inet static\n    address 10.30.1.10\n    netmask 255.255.252.0\n    mtu 1450\niface"
        in (written(root, SEVERAL)["/etc/network/interfaces"])
    )
    (root / "etc/netplan").mkdir()
    ((_path, text),) = written(root, SEVERAL).items()
    addresses = yaml.safe_load(text)["network"]["ethernets"]["00-nova-eth0"]["addresses"]
    assert addresses == ["10.30.1.9/22", "10.30.1.10/22", "fd00::9/64"]


@needs_root
@pytest.mark.parametrize("also_ifupdown", [False, True])
def test_networkd(root: pathlib.Path, also_ifupdown: bool) -> None:
    if also_ifupdown:  # left over: networkd is what starts
        (root / "etc/network").mkdir()
        (root / guest_network.NETWORKD_WANTED[1:]).parent.mkdir(parents=True)
        (root / guest_network.NETWORKD_WANTED[1:]).symlink_to("/lib/systemd/system/systemd-networkd.service")
    files = written(root)
    assert list(files) == [f"/etc/systemd/network/00-nova-eth{n}.network" for n in (0, 1)]
    assert files["/etc/systemd/network/00-nova-eth0.network"].splitlines() == [
        guest_network.NOTE,
        "[Match]",
        "MACAddress=fa:16:3e:00:01:01",
        "",
        "[Link]",
        "MTUBytes=1450",
        "",
        "[Network]",
        "DHCP=no",
        "Address=10.30.1.9/22",
        "Gateway=10.30.0.1",
        "Address=fd00::9/64",
        "Gateway=fd00::1",
        "DNS=10.30.0.53",
        "DNS=fd00::53",
    ]
    assert "DHCP=ipv4" in files["/etc/systemd/network/00-nova-eth1.network"]


def test_a_guest_that_has_none_of_them(tmp_path: pathlib.Path) -> None:
    (tmp_path / "etc").mkdir()
    with GuestRoot(str(tmp_path)) as guest, pytest.raises(NovaliteError, match="use a network with DHCP, or a config"):
        plan(guest, Request(UUID, nics=NICS))


@pytest.mark.parametrize(
    "change",
    [
        {"mac": "fa:16:3e:00:01:01\n"},
        {"mac": "x"},
        {"name": "eth0\n"},
        {"name": "../x"},
        {"mtu": 1},
        {"mtu": 1 << 20},
        {"ipv4": {"address": "10.0.0.1\nup reboot", "prefix": 8}},
        {"ipv4": {"address": "fd00::1", "prefix": 8}},
        {"ipv4": {"address": "10.0.0.1", "prefix": 33}},
        {"ipv6": {"address": "fe80::1%eth0", "prefix": 64}},
        {"ipv4": {"address": "10.0.0.1", "prefix": 8, "gateway": "fd00::1"}},
        {"dns": ["8.8.8.8 evil"]},
    ],
)
def test_what_is_no_address_gets_into_no_file(change: dict[str, t.Any]) -> None:
    with pytest.raises(NovaliteError):
        nics_of({"nics": [{**STATIC, **change}]})


SHADOW = b"root:*:19000:0:99999:7:::\nme:!:19000:0:99999:7:::\nroot:decoy\n#root:*:1:0:9:7:::\n"


@needs_root
def test_a_password_changes_one_field_of_one_line(root: pathlib.Path) -> None:
    (root / "etc/shadow").write_bytes(SHADOW)
    (root / "etc/shadow").chmod(0o640)
    os.chown(root / "etc/shadow", 0, 42)
    with GuestRoot(str(root)) as guest:
        (step,) = plan(guest, Request(UUID, user="me", password_hash=HASH))
        assert HASH not in str(describe(step.after, step.secret))
        apply(guest, [step])
        assert plan(guest, Request(UUID, user="me", password_hash=HASH)) == []
    assert (root / "etc/shadow").read_bytes() == SHADOW.replace(b"me:!:", f"me:{HASH}:".encode())
    status = (root / "etc/shadow").stat()
    assert (status.st_mode & 0o7777, status.st_gid) == (0o640, 42)


def test_passwords_that_cannot_be_written(root: pathlib.Path) -> None:
    with GuestRoot(str(root)) as guest:
        with pytest.raises(NovaliteError, match="has no /etc/shadow"):
            plan(guest, Request(UUID, password_hash=HASH))
        (root / "etc/shadow").write_bytes(SHADOW)
        with pytest.raises(NovaliteError, match="no user 'you' in its /etc/shadow"):
            plan(guest, Request(UUID, user="you", password_hash=HASH))
    for bad in ("plain", HASH + ":0", HASH + "\n", "$6$" + "x\ny", ""):
        assert not inject.is_hash(bad)
    with pytest.raises(NovaliteError, match="crypt") as caught:
        Request(UUID, password_hash="secret:word")
    assert "secret" not in str(caught.value)
