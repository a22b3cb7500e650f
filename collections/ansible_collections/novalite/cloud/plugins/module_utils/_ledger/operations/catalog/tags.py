# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on the tags of what has no metadata of its own to keep them in: EC2's clients have them."""

from __future__ import annotations

import typing as t

from ...ec2 import ec2_tags
from ..call import Call


def replace(call: Call, resource: str, tags: t.Mapping[str, str]) -> None:
    """Have these tags, and no others, on what the project calls `resource`. Raises QuotaError for too many."""
    ec2_tags.remove_tags(call.connection, call.project, resource)
    ec2_tags.write_tags(call.connection, call.project, resource, tags)
