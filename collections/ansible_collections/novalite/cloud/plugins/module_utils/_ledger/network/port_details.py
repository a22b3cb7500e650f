# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""DHCP options of ports, which their servers' hosts hand out, and what administrators say of ports' bindings."""

from __future__ import annotations

import json
import typing as t

from ..._errors import ForbiddenError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._model.instance import DhcpOption
from ..._network import dhcp_options

NORMAL = "normal"  # the only vnic_type that hosts here bind
BINDING = ("profile", "host_id", "vnic_type")
MAX_PROFILE = 4095  # characters, as in Neutron


def merged_options(
    there: t.Sequence[DhcpOption] | None, requested_options: t.Sequence[JsonMapping] | None
) -> list[DhcpOption]:
    """The options that are `there`, changed as in Neutron: of the requested options, one with a value is set, one
    without a value goes; the others stay. Raises NovaliteError."""
    options = {(option["opt_name"], option["ip_version"]): option for option in there or ()}
    for wish in requested_options or ():
        key = str(wish["opt_name"]), int(wish.get("ip_version") or 4)
        if wish.get("opt_value") is None:
            options.pop(key, None)
            continue
        option = dhcp_options.parse("Invalid input for extra_dhcp_opts", key[0], wish["opt_value"], key[1])
        options[key] = {"opt_name": option.name, "opt_value": option.value, "ip_version": option.version}
    if len(options) > dhcp_options.MAX_OPTIONS:
        raise NovaliteError(f"Invalid input for extra_dhcp_opts: more than {dhcp_options.MAX_OPTIONS} on a port")
    return list(options.values())


def merged_binding(there: JsonMapping | None, asked: JsonMapping, by_admin: bool) -> JsonObject | None:
    """The binding of a port that is `there`, with the keys of BINDING that are `asked` for.

    Raises ForbiddenError where somebody else than an administrator changes the profile or the host, NovaliteError for a
    profile that is too long.
    """
    binding: JsonObject = dict(there or {})
    for key in BINDING:
        value, before = asked.get(key) or None, binding.get(key)
        if key not in asked or value == before:
            continue
        if key != "vnic_type" and not by_admin:
            raise ForbiddenError(
                f"rule:create_port:binding:{key} is disallowed by policy: leave it out, or ask an administrator"
            )
        binding[key] = value
    if len(json.dumps(binding.get("profile"))) > MAX_PROFILE:
        raise NovaliteError(f"Invalid input for binding:profile: it has more than {MAX_PROFILE} characters")
    return {key: value for key, value in binding.items() if value and value != NORMAL} or None
