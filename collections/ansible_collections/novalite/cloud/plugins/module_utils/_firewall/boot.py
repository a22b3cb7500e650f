# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later


"""What is loaded at the next boot, before guests start: kept up to date with every change, for a host that loses its
power says nothing before."""

from __future__ import annotations

import os

from .._command import CommandError, run

SCRIPT = "/usr/local/sbin/novalite-firewall"  # the role compute_node installs it
KEPT = "/var/lib/novalite/firewall/iptables"


def keep(changed: bool) -> list[str]:
    """Have the rules of now loaded at the next boot, where that is installed. Returns warnings."""
    if not os.path.exists(SCRIPT) or (os.path.exists(KEPT) and not changed):
        return []
    try:
        run([SCRIPT, "save"])
    except CommandError as error:
        return [f"guests of this host will be closed after the next boot until playbooks/firewall.yml has run: {error}"]
    return []
