# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Types for JSON that is passed on unread: results of modules, documents of users, facts of hosts."""

from __future__ import annotations

import typing as t

Json = t.Any  # any value of JSON
JsonObject = dict[str, Json]
JsonMapping = t.Mapping[str, Json]  # an object that is read only
