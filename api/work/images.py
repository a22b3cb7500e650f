# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images that a project is offered."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import SeenImage


def offered(rows: t.Sequence[SeenImage], project: str) -> list[SeenImage]:
    """List those of `rows` (images_seen) that are not hidden: the project's own, the cloud's, and others' that are not
    of the community."""
    return [
        row for row in rows if not row["os_hidden"] and (row["owner"] == project or row["visibility"] != "community")
    ]
