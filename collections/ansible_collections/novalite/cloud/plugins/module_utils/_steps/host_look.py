# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `host_look`: look whether this host lives, and what it has, for the watcher.

Each look has the dead-man's switch count anew, where there is one, from the last answer that the controller knows of,
and touches the host's heartbeat file. What cannot be read in time is said, and fails nothing: a host that answers
lives.
"""

from __future__ import annotations

import contextlib
import typing as t

from .._errors import NovaliteError
from .._host import heartbeat, switch
from .._host.files import read_text
from .._host.libvirt_connection import DEFAULT_URI, connect
from .._host.module import HostCall, Result
from .._host.waiting import in_threads
from .._host.within import NoAnswerError, within
from .._samples.counters import is_ours

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

R = t.TypeVar("R")

PATIENCE = 3.0  # seconds for all parts: who does not answer a look for 6 s is silent
BOOT_ID = "/proc/sys/kernel/random/boot_id"

ARGUMENT_SPEC = {
    # Name of the host in the ledger, which its heartbeat file has.
    "host": {"type": "str", "required": True},
    # Seconds after `reading` at which the host powers itself off, unless another look tells a later one; 0 disarms it.
    # Without them the switch stays as it is.
    "switch": {"type": "int"},
    # The host's clock, as it told with the last answer that the controller knows of. Without one, and with one of
    # another boot, a switch is not armed anew.
    "reading": {
        "type": "dict",
        "options": {"boot_id": {"type": "str", "required": True}, "seconds": {"type": "float", "required": True}},
    },
    # Directory on storage that all hosts share; "" for no heartbeat.
    "heartbeat": {"type": "str", "default": ""},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `boot_id`: the kernel's, another one after each boot; `uptime`: seconds since then, for `reading` of later looks
    * `stopping`: whether systemd is shutting the host down
    * `switch_s`: seconds until the dead-man's switch powers the host off, 0 where that is not armed
    * `libvirt`: whether libvirt answers
    * `guests`: UUIDs of novalite's domains on this host, `running`: of those whose QEMU runs
    * `heartbeats`: seconds since each host's heartbeat, by its name and the storage's clock
    * `complaints`: what could not be done, or read, in words
    """
    params = call.params
    uptime, boot_id = switch.clock(), (read_text(BOOT_ID) or "").strip()
    reading = params["reading"] or {}
    since = reading["seconds"] if reading.get("boot_id") == boot_id else None
    complaints: list[str] = []

    def tried(about: str, part: t.Callable[[], R], otherwise: R) -> R:
        try:
            return within(PATIENCE, part)
        except NoAnswerError:
            complaints.append(f"{about}: no answer within {PATIENCE:g} s")
        except NovaliteError as error:
            complaints.append(f"{about}: {error}")
        return otherwise

    def beat() -> dict[str, float]:
        beats = params["heartbeat"] and not call.check_mode
        return heartbeat.beat(params["heartbeat"], params["host"]) if beats else {}

    # All at once: where several hang, a look takes no longer than where one does
    parts: list[t.Callable[[], t.Any]] = [
        lambda: tried("libvirt", lambda: _guests(params["uri"]), None),
        lambda: tried("switch", lambda: _switch(params["switch"], since, call.check_mode), 0.0),
        lambda: tried("systemd", switch.is_stopping, False),
        lambda: tried("heartbeat", beat, dict[str, float]()),
    ]
    guests, switch_s, stopping, heartbeats = in_threads(lambda part: part(), parts)
    return {
        "changed": False,
        "boot_id": boot_id,
        "uptime": uptime,
        "stopping": stopping,
        "switch_s": switch_s,
        "libvirt": guests is not None,
        "guests": sorted(guests or ()),
        "running": sorted(uuid for uuid, runs in (guests or {}).items() if runs),
        "heartbeats": heartbeats,
        "complaints": sorted(complaints),
    }


def _switch(seconds: int | None, since: float | None, check_mode: bool) -> float:
    """Arm the switch, disarm it for 0 seconds, or (None) leave it as it is; return the seconds that it leaves this
    host, 0 where it is not armed."""
    if not check_mode and seconds and since is not None:
        switch.arm(seconds, since)
    elif not check_mode and seconds == 0 and switch.is_there():
        switch.disarm()
    return switch.left() if switch.is_there() else 0.0


def _guests(uri: str) -> dict[str, bool]:
    """Return for each of novalite's domains, by UUID, whether it runs. Raises NovaliteError."""
    connection = connect(uri)
    try:
        domains = [(domain.UUIDString(), domain, bool(domain.isActive())) for domain in connection.listAllDomains(0)]
        return {uuid: runs for uuid, domain, runs in domains if is_ours(domain)}
    except libvirt.libvirtError as error:
        raise NovaliteError(f"libvirt does not list its domains: {error}") from error
