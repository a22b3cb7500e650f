# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel's network settings (sysctl `net.*`), in the host's own namespace or in a network's."""

from __future__ import annotations

import contextlib
import os
import typing as t

from .._errors import NovaliteError
from .._host.files import read_text
from .namespaces import entered

ROOT = "/proc/sys/net"


def wrong(settings: t.Mapping[str, str], namespace: str | None = None) -> dict[str, str]:
    """Return those of the `settings` (path below net/ -> value) that are something else, with what they are. A setting
    that the kernel does not have (IPv6 turned off, a device not made yet) is not wrong."""
    with entered(namespace):
        values = {name: _read(name) for name in settings}
    return {name: value for name, value in values.items() if value is not None and value != settings[name]}


def put(values: t.Mapping[str, str], namespace: str | None = None) -> None:
    """Write settings, and read them back. Raises NovaliteError for one that stays as it was."""
    with entered(namespace):
        for name, value in values.items():
            with contextlib.suppress(OSError), open(os.path.join(ROOT, name), "w", encoding="ascii") as handle:
                handle.write(value + "\n")
            if _read(name) != value:
                raise NovaliteError(
                    f"net/{name} is {_read(name)} and cannot be set to {value}; set it on this host with sysctl"
                )


def keep_router_advertisements() -> dict[str, str]:
    """Settings by which a host that forwards IPv6 keeps its routes from advertisements (not with accept_ra 1)."""
    settings = {}
    with contextlib.suppress(OSError):
        for device in os.listdir(os.path.join(ROOT, "ipv6/conf")):
            name = f"ipv6/conf/{device}/accept_ra"
            if device not in ("all", "lo") and _read(name) == "1":
                settings[name] = "2"
    return settings


def forwarding(name: str) -> list[tuple[str, str]]:
    """The settings that the kernel changes along with `name`, when that is forwarding: every device's own switch."""
    family = {"ipv4/ip_forward": "ipv4", "ipv6/conf/all/forwarding": "ipv6"}.get(name)
    settings = []
    with contextlib.suppress(OSError):
        for device in sorted(os.listdir(os.path.join(ROOT, family, "conf"))) if family else ():
            value = _read(f"{family}/conf/{device}/forwarding")
            if device != "all" and value is not None:
                settings.append((f"{family}/conf/{device}/forwarding", value))
    return settings


def _read(name: str) -> str | None:
    text = read_text(os.path.join(ROOT, name))
    return None if text is None else text.strip()
