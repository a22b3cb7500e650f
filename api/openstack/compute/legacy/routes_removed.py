# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Routes that Nova gave up without a successor: they answer 410 in its words, not 404 as for a path that never was.

Source: nova/api/openstack/compute/routes.py, whose controllers of these raise HTTPGone.
"""

from __future__ import annotations

from werkzeug.exceptions import Gone

from ....web.bodies import Answer
from ..blueprint import compute_legacy

REMOVED = ("os-agents", "os-cells", "os-certificates", "os-cloudpipe", "os-fping")


def refuse() -> Answer:
    raise Gone()


for _path in REMOVED:
    compute_legacy.get(f"/{_path}", "compute:extensions:read", endpoint=f"removed_{_path.replace('-', '_')}")(refuse)
