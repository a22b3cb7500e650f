# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the kernel shows bridged packets to iptables at all: without that every chain here is bypassed.

The kernel asks two switches, one of the host (`net.bridge.bridge-nf-call-iptables`) and one of each bridge
(`nf_call_iptables`), and is content with either. The host's is its operator's: it decides about other people's bridges,
too, whose packets a FORWARD that drops (Docker's) would stop. novalite turns on that of the bridges its guests are on.
"""

from __future__ import annotations

import contextlib
import json
import os
import typing as t

from .._command import CommandError, run
from .._errors import NovaliteError

DIRECTORY = "/proc/sys/net/bridge"
SWITCHES = ("bridge-nf-call-iptables", "bridge-nf-call-ip6tables")
_LOADED_ON = (*SWITCHES, "bridge-nf-call-arptables")  # what br_netfilter turns on for the whole host


def missing(check_mode: bool = False, directory: str = DIRECTORY, bridges: t.Collection[str] = ()) -> dict[str, str]:
    """The switches that are not 1, with their value ("absent" without br_netfilter, which is loaded if possible): those
    of `bridges` that are there, where the host's is not on; without `bridges`, the host's."""
    load(check_mode, directory, quietly=bool(bridges))
    values = {f"net.bridge.{name}": _read(os.path.join(directory, name)) for name in SWITCHES}
    wrong = {name: value for name, value in values.items() if value != "1"}
    if "absent" in wrong.values() or not wrong or not bridges:
        return wrong
    own = {bridge: _of_bridge(bridge) for bridge in bridges}
    differing: dict[str, str] = {}
    for name in wrong:
        option = name.rpartition(".")[2].replace("bridge-", "").replace("-", "_")
        differing |= {
            f"{bridge}/{option}": switches[option]
            for bridge, switches in own.items()
            if switches and switches[option] != "1"
        }
    return differing


def load(check_mode: bool = False, directory: str = DIRECTORY, quietly: bool = True) -> None:
    """Have br_netfilter loaded, if possible: `quietly` without what it turns on for every bridge of the host, of whom
    nobody asked for that."""
    if os.path.isdir(directory) or check_mode:
        return
    with contextlib.suppress(CommandError):
        run(["modprobe", "br_netfilter"])
        for name in _LOADED_ON if quietly else ():
            _write(os.path.join(directory, name), "0")


def command(bridge: str, switch: str, value: str) -> list[str]:
    """What sets a switch of a bridge's own, by its name in iproute2."""
    return ["ip", "link", "set", bridge, "type", "bridge", switch, value]


def ensure(wrong: t.Mapping[str, str], directory: str = DIRECTORY) -> None:
    """Set the named switches to 1 and read them back. Raises NovaliteError when one stays off."""
    for name in wrong:
        bridge, slash, option = name.partition("/")
        if slash:
            run(command(bridge, option, "1"))
            value = _of_bridge(bridge).get(option, "absent")
        else:
            path = os.path.join(directory, name.rpartition(".")[2])
            _write(path, "1")
            value = _read(path)
        if value != "1":
            raise NovaliteError(
                f"{name} is {value} and cannot be set to 1: bridged packets would bypass every security group; "
                "load br_netfilter and set it to 1 on this host"
            )


def _of_bridge(bridge: str) -> dict[str, str]:
    """Its own switches by their names in iproute2; none where it is not there, or no bridge."""
    # not of /sys, which shows the devices of the namespace that it was mounted in
    with contextlib.suppress(CommandError, ValueError, KeyError, IndexError):
        data = json.loads(run(["ip", "-d", "-j", "link", "show", "dev", bridge]).stdout)[0]["linkinfo"]["info_data"]
        return {option: str(data[option]) for option in ("nf_call_iptables", "nf_call_ip6tables")}
    return {}


def _write(path: str, value: str) -> None:
    with contextlib.suppress(OSError), open(path, "w", encoding="ascii") as handle:
        handle.write(f"{value}\n")


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as handle:
            return handle.read().strip()
    except OSError:
        return "absent"
