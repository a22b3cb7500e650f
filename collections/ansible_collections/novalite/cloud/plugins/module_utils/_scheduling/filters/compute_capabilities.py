# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's ComputeCapabilitiesFilter: a flavor's `capabilities:<attribute>` must match what the host is."""

from __future__ import annotations

from ..attributes import is_attribute, look_up
from ..extra_specs import matches
from ..options import Options
from ..rows import HostState, Request

NAME = "compute_capabilities"
NOVA = "ComputeCapabilitiesFilter"
RUN_ONCE_PER_REQUEST = True


def concerns(request: Request, options: Options) -> bool:
    """Flavors without extra specs ask for nothing."""
    return bool(request.extra_specs)


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host of which an attribute does not satisfy a `capabilities:` key or one without any scope.

    A key without a scope that names no attribute is somebody else's and is ignored; so are other scopes. Attributes
    are called as in Nova (`attributes.py`); `capabilities:cpu_info:arch` looks into a mapping.
    """
    for key, requirement in request.extra_specs.items():
        scope, *path = key.split(":")
        if path and scope != "capabilities":
            continue
        if not path:
            if not is_attribute(host, scope):
                continue
            path = [scope]
        value = look_up(host, path)
        if value is None:
            return f"has no {':'.join(path)}, the flavor asks for {requirement}"
        if not matches(str(value), str(requirement)):
            return f"has {':'.join(path)} {value}, the flavor asks for {requirement}"
    return None
