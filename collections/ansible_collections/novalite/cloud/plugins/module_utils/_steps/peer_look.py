# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `peer_look`: ask whether this host gets any answer from others, by ICMP or at their ssh port.

A host whose ssh daemon is stopped answers a ping, one behind a firewall its port. A port that refuses is an answer,
too: whoever refuses is there.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import ipaddress
import socket

from .._errors import NovaliteError
from .._host.command import CommandError
from .._host.command import run as run_command
from .._host.module import HostCall, Result
from .._host.waiting import in_threads
from .._json import JsonMapping

MOST = 256  # hosts at once
PINGS = 2  # of which one may be lost

ARGUMENT_SPEC = {
    # The hosts that are asked for, all at once.
    "hosts": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "name": {"type": "str", "required": True},
            "address": {"type": "str", "required": True},
            # Port of its ssh daemon.
            "port": {"type": "int", "default": 22},
        },
    },
    # Seconds that an answer may take.
    "timeout": {"type": "int", "default": 3},
}


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `words`: one entry for each of `hosts`, in the same order; `host` (its name), `reached` (whether it answered)
    """
    hosts, timeout = call.params["hosts"], call.params["timeout"]
    if len(hosts) > MOST:
        raise NovaliteError(f"{len(hosts)} hosts are too many for one look: name at most {MOST}")
    if not 1 <= timeout <= 60:
        raise NovaliteError(f"timeout {timeout}: choose 1 to 60 seconds")
    addresses = [_address(host) for host in hosts]

    def reached(number: int) -> bool:
        return _answers(addresses[number], hosts[number]["port"], timeout)

    answers = in_threads(reached, range(len(hosts)), workers=MOST)
    return {
        "changed": False,
        "words": [{"host": host["name"], "reached": answer} for host, answer in zip(hosts, answers)],
    }


def _address(host: JsonMapping) -> str:
    """Return an address of `host`: what a name server says may take longer than a look. Raises NovaliteError."""
    try:
        return str(ipaddress.ip_address(host["address"]))
    except ValueError:
        pass
    try:  # /etc/hosts, mostly
        return str(socket.getaddrinfo(host["address"], None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise NovaliteError(
            f"'{host['address']}' of host {host['name']} is not an address, and not known here: name its IP address"
        ) from error


def _answers(address: str, port: int, timeout: int) -> bool:
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        tries = [pool.submit(_pings, address, timeout), pool.submit(_connects, address, port, timeout)]
        return any(attempt.result() for attempt in tries)


def _pings(address: str, timeout: int) -> bool:
    argv = ["ping", "-n", "-q", "-c", str(PINGS), "-i", "0.2", "-W", str(timeout), "-w", str(timeout), address]
    try:
        run_command(argv, timeout=timeout + 2)
    except CommandError:
        return False
    return True


def _connects(address: str, port: int, timeout: int) -> bool:
    try:
        with contextlib.closing(socket.create_connection((address, port), timeout)):
            return True
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
