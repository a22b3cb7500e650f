# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Frames that a guest may put on the wire where libvirt's network filters see to it: those of a real libvirtd, on both
backends of ours beside them."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import time
import typing as t
from xml.sax.saxutils import quoteattr

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._network import nwfilter
from tests.packets.bed import Bed, run
from tests.packets.policies import policy
from tests.packets.test_by_device import OWNER, enforce_first, of_discovery, with_devices
from tests.packets.test_spoofing import (
    ANYTHING,
    ATTACKERS,
    OWNERS,
    PAIRS,
    SECOND,
    around_owners,
    of_ipv4,
    of_ipv6,
    of_second,
    planned,
    reached,
)
from tests.support.patience import GENEROUS

pytestmark = pytest.mark.root

# With state of its own: this machine may have a libvirtd.
_DAEMON = """
for directory in /etc/libvirt /var/lib/libvirt /run/libvirt; do
  mkdir -p "$directory"
  mount -t tmpfs tmpfs "$directory"
done
exec libvirtd --pid-file /run/libvirt/libvirtd.pid
"""


class Libvirt:
    """A libvirtd on the host under test."""

    def __init__(self, bed: Bed) -> None:
        self.process = subprocess.Popen(
            [
                "ip",
                "netns",
                "exec",
                bed.prefix + "host",
                "unshare",
                "-m",
                "--propagation",
                "private",
                "sh",
                "-ec",
                _DAEMON,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def virsh(self, *words: str, text: str | None = None) -> str:
        return self.run("virsh", "-q", "-c", "qemu:///system", *words, text=text)

    def run(self, *argv: str, text: str | None = None) -> str:
        return run("nsenter", "-t", str(self.process.pid), "-m", "-n", *argv, text=text)

    def __enter__(self) -> Libvirt:
        deadline = time.monotonic() + GENEROUS
        while True:
            try:
                self.virsh("nwfilter-list")
                return self
            except RuntimeError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    self.__exit__()
                    raise
                time.sleep(0.2)

    def __exit__(self, *_exception: object) -> None:
        with self.process:
            self.process.terminate()


def binding(device: str, mac: str, filter_: str, parameters: t.Mapping[str, t.Sequence[str]]) -> str:
    parameter_elements = "".join(
        f"<parameter name={quoteattr(name)} value={quoteattr(value)}/>"
        for name, values in parameters.items()
        for value in values
    )
    return (
        f"<filterbinding><owner><name>guest</name><uuid>5f0ddc3c-6d6c-4d0c-9d0e-0d0c6a1f7a11</uuid></owner>"
        f"<portdev name={quoteattr(device)}/><mac address={quoteattr(mac)}/>"
        f"<filterref filter={quoteattr(filter_)}>{parameter_elements}</filterref></filterbinding>"
    )


needs_libvirtd = pytest.mark.skipif(
    shutil.which("libvirtd") is None or shutil.which("virsh") is None, reason="needs libvirtd"
)


def bound(bed: Bed, libvirt: Libvirt, name: str, pairs: t.Sequence[t.Mapping[str, str]], *further: str) -> None:
    """Bind a guest's device to a filter of its own, as libvirt does when the guest starts."""
    place, device, filter_ = bed.places[name], bed.tap(name), f"nova-instance-{name}"
    own = {"name": filter_, "references": list(nwfilter.SECURED), "allowed_pairs": pairs}
    for each in (*nwfilter.SECURED.values(), *nwfilter.parse([own])):
        if each.name not in libvirt.virsh("nwfilter-list").split():
            libvirt.virsh("nwfilter-define", "/dev/stdin", text=nwfilter.to_xml(each))
    addresses = {"IP": [place.ip, *further], "IPV6": [place.ip6, place.link_local]}
    xml = binding(device, place.mac, filter_, addresses)
    libvirt.virsh("nwfilter-binding-create", "/dev/stdin", text=xml)
    assert any(f"-i {device} " in line and "libvirt-" in line for line in bed.saved_bridge())


@needs_libvirtd
@OWNER
def test_a_guest_speaks_for_itself_only(bed: Bed, is_given: bool) -> None:
    me, other, near = (bed.places[name] for name in ("guest-1", "guest-2", "bystander"))
    desired_policy = with_devices(bed, policy(bed.places, {1: ANYTHING}, {1: [1], 2: [1]}))
    pairs = ["fd99::100", "fd99::1:0/124"]
    desired_policy["instances"][0]["allowed_pairs"] = [{"cidr": cidr} for cidr in pairs]
    with Libvirt(bed) as libvirt:
        bound(bed, libvirt, "guest-1", [{"mac": me.mac, "cidr": cidr} for cidr in pairs])
        try:
            enforce_first(bed, desired_policy, is_given)
            sent = [*of_ipv4(me, other, near), *of_ipv6(me, other, near), *of_discovery(me, other, near)]
            problems = reached(bed, "guest-1", "bystander", sent)
            assert not problems, "\n".join(problems)
            assert any("libvirt-" in line for line in bed.saved_bridge()), "libvirt's own rules are libvirt's"
        finally:
            libvirt.virsh("nwfilter-binding-delete", bed.tap("guest-1"))


@needs_libvirtd
def test_a_second_address_is_its_owners(bed: Bed) -> None:
    me, other, near = (bed.places[name] for name in ("guest-1", "guest-2", "bystander"))
    desired_policy = policy(bed.places, {1: ANYTHING}, {1: [1], 2: [1]})
    with Libvirt(bed) as libvirt:
        bound(bed, libvirt, "guest-1", [], SECOND)
        bound(bed, libvirt, "guest-2", [])
        try:
            bed.enforce(**planned(bed, desired_policy, antispoof="nwfilter", further={1: SECOND}))
            problems = reached(bed, "guest-1", "bystander", [*of_ipv4(me, other, near), *of_second(me, near, True)])
            problems += reached(bed, "guest-2", "bystander", of_second(other, near, False))
            assert not problems, "\n".join(problems)
        finally:
            for name in ("guest-1", "guest-2"):
                libvirt.virsh("nwfilter-binding-delete", bed.tap(name))


@needs_libvirtd
@ATTACKERS
def test_a_pair_changes_nothing_for_owners_who_are_not_given(bed: Bed, rules: list[dict[str, t.Any]]) -> None:
    attacker = policy(bed.places, {3: rules}, {3: [3]})
    asked = planned(bed, attacker, *PAIRS)["instances"][0]["ports"][0]["allowed_pairs"]  # a filter's are the same
    with Libvirt(bed) as libvirt:
        devices = []
        try:
            for name in ("guest-1", "guest-2"):
                bound(bed, libvirt, name, [])
                devices.append(bed.tap(name))
            bed.enforce(**planned(bed, policy(bed.places, OWNERS, {1: [1], 2: [2]}), antispoof="nwfilter"))
            bound(bed, libvirt, "guest-3", asked)
            devices.append(bed.tap("guest-3"))
            bed.enforce(**planned(bed, attacker, *PAIRS, antispoof="nwfilter"))
            problems = around_owners(bed, bool(rules))
            assert not problems, "\n".join(problems)
        finally:
            for device in devices:
                libvirt.virsh("nwfilter-binding-delete", device)


# Fails two additions of a rule to a guest's chain as ebtables 1.8.9 does beside an iptables-restore of the same moment,
# which cannot be had on demand. All else is ebtables itself.
_RACING = """#!/bin/sh
case "$*" in
*"-A libvirt-"*)
  if mkdir /run/libvirt/race-1 2>/dev/null || mkdir /run/libvirt/race-2 2>/dev/null; then
    echo "ebtables v1.8.9 (nf_tables):  RULE_DELETE failed (No such file or directory): rule in chain libvirt-J" >&2
    exit 4
  fi ;;
esac
exec /run/libvirt/multi "$(basename "$0")" "$@"
"""

_INSTALL = """
multi=$(readlink -f /usr/sbin/ebtables)
cp "$multi" /run/libvirt/multi
cat >/run/libvirt/racing
chmod 755 /run/libvirt/racing
mount --bind /run/libvirt/racing "$multi"
"""

# By Debian's binding, as a module on the host has it
_BIND = """
import sys

sys.path.insert(0, sys.argv[1])
from ansible_collections.novalite.cloud.plugins.module_utils._host import libvirt_connection

connection, xml = libvirt_connection.libvirt.open("qemu:///system"), sys.stdin.read()
libvirt_connection.with_filters(lambda: connection.nwfilterBindingCreateXML(xml))
"""


@needs_libvirtd
@pytest.mark.parametrize("bed", ["nft"], indirect=True)
def test_filters_are_applied_beside_other_changes_of_rules(bed: Bed) -> None:
    collections = pathlib.Path(__file__).parents[2] / "collections"
    place, device = bed.places["guest-1"], bed.tap("guest-1")
    with Libvirt(bed) as libvirt:
        bound(bed, libvirt, "guest-1", [])
        in_peace = bed.saved_bridge()
        libvirt.virsh("nwfilter-binding-delete", device)
        libvirt.run("sh", "-ec", _INSTALL, text=_RACING)
        xml = binding(
            device, place.mac, "nova-instance-guest-1", {"IP": [place.ip], "IPV6": [place.ip6, place.link_local]}
        )
        with pytest.raises(RuntimeError, match="RULE_DELETE failed"):
            libvirt.virsh("nwfilter-binding-create", "/dev/stdin", text=xml)
        libvirt.run("/usr/bin/python3", "-c", _BIND, str(collections), text=xml)
        try:
            assert bed.saved_bridge() == in_peace
            libvirt.run("rmdir", "/run/libvirt/race-1", "/run/libvirt/race-2")  # both happened
        finally:
            libvirt.virsh("nwfilter-binding-delete", device)
