# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What passes through as JSON and nobody here looks into: results of modules, documents of users, facts of hosts."""

from __future__ import annotations

import typing as t

Json = t.Any  # any value of JSON
JsonObject = dict[str, Json]
JsonMapping = t.Mapping[str, Json]  # an object that is read only
