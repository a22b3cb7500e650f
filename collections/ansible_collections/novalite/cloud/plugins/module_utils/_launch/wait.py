# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Waiting for guests to answer, from their compute host."""

from __future__ import annotations

import socket
import time
import typing as t

from .._errors import NovaliteError
from .._host import in_threads
from .._network.namespaces import entered

PAUSE = 0.1  # seconds between two attempts


class Guest(t.NamedTuple):
    """`namespace` is where the guest's network is on this host; None for the host's own."""

    name: str
    address: str
    namespace: str | None = None


def wait_for_banner(guests: t.Sequence[Guest], port: int, banner: str, timeout: float) -> dict[str, float]:
    """Seconds until each of `guests` sent `banner` on `port`, by name.

    Raises NovaliteError after `timeout` seconds, naming every guest that did not.
    """
    started = time.monotonic()
    wanted = banner.encode()

    def wait(guest: Guest) -> float | None:
        with entered(guest.namespace):
            while time.monotonic() - started < timeout:
                if _first_bytes(guest.address, port, len(wanted)) == wanted:
                    return round(time.monotonic() - started, 2)
                time.sleep(PAUSE)
        return None

    seconds = dict(zip(guests, in_threads(wait, guests, workers=len(guests))))
    silent = [f"{guest.name} ({guest.address})" for guest, took in seconds.items() if took is None]
    if silent:
        raise NovaliteError(
            f"no answer on port {port} within {timeout:g} s from {', '.join(silent)}: read their console.log"
        )
    return {guest.name: took for guest, took in seconds.items() if took is not None}


def _first_bytes(address: str, port: int, count: int) -> bytes:
    """The first `count` bytes that the service sends, or fewer when it does not answer."""
    received = b""
    try:
        with socket.create_connection((address, port), timeout=2.0) as connection:
            while len(received) < count:
                part = connection.recv(count - len(received))
                if not part:
                    break
                received += part
    except OSError:
        pass
    return received
