# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waiting for guests to answer, from their compute host: their ssh server, or their guest agent."""

from __future__ import annotations

import dataclasses
import errno
import socket
import time
import typing as t

from .._errors import NovaliteError
from .._host.waiting import in_threads
from .._network.namespaces import entered

try:
    import libvirt
    import libvirt_qemu
except ImportError:  # reported when an agent is asked, with the rest of libvirt's binding
    libvirt_qemu = None  # type: ignore[assignment]  # mypy has no name for a module that may be missing

PAUSE = 0.1  # seconds between two attempts
AGENT_TIMEOUT = 2  # seconds that libvirt waits for an agent's answer
_NOBODY = (errno.EHOSTUNREACH, errno.ENETUNREACH)


@dataclasses.dataclass(frozen=True)
class Guest:
    """A guest to wait for. `namespace` is where its network is on this host (None: the host's own), `domain` its name
    in libvirt, `hindrance` why the compute host cannot reach its ssh server, where that is known beforehand."""

    name: str
    address: str | None = None
    namespace: str | None = None
    domain: str | None = None
    agent: bool = False  # whether it has a channel for a guest agent
    hindrance: str | None = None


@dataclasses.dataclass(frozen=True)
class Silence:
    """A guest that did not answer, and what is in the way."""

    name: str
    address: str | None
    reason: str

    @property
    def message(self) -> str:
        return f"{self.name} ({self.address or 'no address'}): {self.reason}"


@dataclasses.dataclass(frozen=True)
class Waited:
    """Seconds until each guest answered, by name; and those that did not."""

    answered: dict[str, float]
    silent: tuple[Silence, ...]


Ask = t.Callable[[Guest], t.Optional[str]]  # asks a guest once; None when it answered, otherwise what is in the way


def wait_for_ssh(guests: t.Sequence[Guest], port: int, banner: str, timeout: float) -> Waited:
    """Wait, at most `timeout` seconds, until each guest with an address and no hindrance sends `banner` on TCP
    `port`."""

    def ask(guest: Guest) -> str | None:
        return _banner_missing(guest.address or "", port, banner)  # there is one: see the hindrance below

    return _wait(guests, ask, lambda guest: guest.hindrance if guest.address else "it has no address", timeout)


def wait_for_agent(guests: t.Sequence[Guest], connection: libvirt.virConnect, timeout: float) -> Waited:
    """Wait, at most `timeout` seconds, until the guest agent of each guest answers a ping through libvirt. Raises
    NovaliteError without libvirt's binding for QEMU."""
    if libvirt_qemu is None:
        raise NovaliteError("libvirt's Python binding lacks libvirt_qemu on this host; install python3-libvirt")

    def ask(guest: Guest) -> str | None:
        try:
            domain = connection.lookupByName(guest.domain or "")
            libvirt_qemu.qemuAgentCommand(domain, '{"execute": "guest-ping"}', AGENT_TIMEOUT, 0)
        except libvirt.libvirtError as error:
            return f"its guest agent does not answer ({error.get_error_message()}); install qemu-guest-agent in it"
        return None

    def hindrance(guest: Guest) -> str | None:
        return None if guest.agent else "its image lacks the property hw_qemu_guest_agent=yes, so it has no channel"

    return _wait(guests, ask, hindrance, timeout)


def _wait(guests: t.Sequence[Guest], ask: Ask, hindrance: Ask, timeout: float) -> Waited:
    started = time.monotonic()

    def wait(guest: Guest) -> tuple[float, str | None]:
        reason = hindrance(guest)
        if reason is not None:
            return 0.0, reason
        with entered(guest.namespace):
            while True:
                reason = ask(guest)
                seconds = time.monotonic() - started
                if reason is None or seconds >= timeout:
                    return round(seconds, 2), reason and f"{reason} (waited for {timeout:g} s)"
                time.sleep(PAUSE)

    ends = list(zip(guests, in_threads(wait, guests, workers=max(len(guests), 1))))
    return Waited(
        answered={guest.name: seconds for guest, (seconds, reason) in ends if reason is None},
        silent=tuple(
            Silence(guest.name, guest.address, reason) for guest, (_seconds, reason) in ends if reason is not None
        ),
    )


def _banner_missing(address: str, port: int, banner: str) -> str | None:
    """Return why `banner` does not come from `address`; None when it does. A connection alone proves nothing: a port
    forwarder accepts before its guest is up."""
    first_bytes = banner.encode()
    received = b""
    try:
        with socket.create_connection((address, port), timeout=2.0) as connection:
            while len(received) < len(first_bytes):
                part = connection.recv(len(first_bytes) - len(received))
                if not part:
                    break
                received += part
    except ConnectionRefusedError:
        return f"it is up, but nothing listens on TCP port {port}"
    except OSError as error:
        if error.errno in _NOBODY:
            return "nobody answers at this address on its network: it has not taken the address, or has not booted"
        return f"no answer on TCP port {port}: read its console with console.yml"
    return None if received == first_bytes else f"what answers on TCP port {port} does not begin with {banner!r}"
