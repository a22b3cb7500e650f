# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The arguments of modules that ask the scheduler. Written out in the documentation fragment `scheduling`, too."""

from __future__ import annotations

import dataclasses

from .._json import JsonObject
from .options import Options

_TYPES = {
    "t.Sequence[str]": {"type": "list", "elements": "str"},
    "t.Mapping[str, float]": {"type": "dict"},
    "str | None": {"type": "str"},
}
# Left out is left to the defaults there.
_OPTIONS: JsonObject = {
    field.name: _TYPES.get(str(field.type), {"type": field.type}) for field in dataclasses.fields(Options)
}

SCHEDULING_ARGUMENTS: JsonObject = {
    "options": {
        "type": "dict",
        "default": {},
        "options": {**_OPTIONS, "plugin_paths": {"type": "list", "elements": "path"}},
    },
    "limit_to": {"type": "list", "elements": "str"},
}

# How instances are placed; written out in the fragment `scheduling.choice`.
CHOICE_ARGUMENTS: JsonObject = {
    "compute_hosts": {"type": "list", "elements": "dict"},
    "choice": {
        "type": "str",
        "choices": ["filter_scheduler", "simple", "chance", "zone"],
        "default": "filter_scheduler",
    },
    "all_or_nothing": {"type": "bool", "default": True},
    "reservations": {"type": "dict"},
    "explain_all": {"type": "bool", "default": False},
    "service_down_time": {"type": "int", "default": 60},
    "seen_hosts": {"type": "list", "elements": "str", "default": []},
    "max_attempts": {"type": "int", "default": 3},
}
