# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Further DHCP options of single guests, as lines of dnsmasq's `dhcp-optsfile`. Pure.

A guest with options has a tag of its own in `dhcp-hostsfile`, and its options have the same tag. dnsmasq logs an option
that it does not know, and leaves it out.
"""

from __future__ import annotations

import re
import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping

MAX_OPTIONS = 32  # of a guest
MAX_NUMBERS = {4: 254, 6: 65535}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
# Printable, without what has a meaning to dnsmasq's reader of files: quotes, backslashes, and # of a comment.
_VALUE = re.compile(r"[!$-\[\]-~](?:[ !$-\[\]-~]{0,253}[!$-\[\]-~])?")
_LINE = re.compile(r"tag:(port-[0-9a-f]{12}),(option6?):([^,]+),(.+)|tag:(port-[0-9a-f]{12}),([0-9]+),(.+)")


class Option(t.NamedTuple):
    """`name` is dnsmasq's or a number, `version` that of IP."""

    name: str
    value: str
    version: int = 4


def parse(what: str, name: str, value: str, version: int) -> Option:
    """An option, checked. Raises NovaliteError that begins with `what`."""
    if not _NAME.fullmatch(name) or (name.isdecimal() and not 1 <= int(name) <= MAX_NUMBERS[version]):
        raise NovaliteError(f"{what}: {name[:64]!r} is not a name or number of a DHCP option")
    if not _VALUE.fullmatch(value):
        raise NovaliteError(
            f"{what}: {value[:64]!r} is not a value for {name}: 1 to 255 printable characters of ASCII without quotes, "
            "backslashes and #"
        )
    return Option(name, value, version)


def parse_all(what: str, values: t.Iterable[JsonMapping] | None) -> tuple[Option, ...]:
    """The `options` of a host, as the module `dhcp` takes them. Raises NovaliteError."""
    options = [parse(what, value["name"], value["value"], int(value.get("version") or 4)) for value in values or ()]
    if len(options) > MAX_OPTIONS:
        raise NovaliteError(f"{what}: {len(options)} DHCP options are more than {MAX_OPTIONS}")
    return tuple(options)


def tag(mac: str) -> str:
    return f"port-{mac.replace(':', '')}"


def text(by_mac: t.Mapping[str, t.Iterable[Option]]) -> str:
    """The file's text."""
    return "".join(
        f"tag:{tag(mac)},{_kind(option)}{option.name},{option.value}\n" for mac in by_mac for option in by_mac[mac]
    )


def read(written: str) -> dict[str, tuple[Option, ...]]:
    """Tag -> the options in a text of text()."""
    options: dict[str, tuple[Option, ...]] = {}
    for match in filter(None, map(_LINE.fullmatch, written.splitlines())):
        option = (
            Option(match[3], match[4], 6 if match[2] == "option6" else 4) if match[1] else Option(match[6], match[7])
        )
        own = match[1] or match[5]
        options[own] = (*options.get(own, ()), option)
    return options


def _kind(option: Option) -> str:
    if option.version == 6:
        return "option6:"
    return "" if option.name.isdecimal() else "option:"
