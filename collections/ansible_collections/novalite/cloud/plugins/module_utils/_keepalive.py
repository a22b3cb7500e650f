# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""ssh's own keep-alive, for every way in: a host that falls silent ends a session after a minute.

Without it a session to a machine that lost its power, or its cable, ends when the kernel gives up: after 15 minutes
where something was sent, after two hours where not.
"""

from __future__ import annotations

OPTIONS = (("ServerAliveInterval", "15"), ("ServerAliveCountMax", "4"))
ARGUMENTS = " ".join(f"-o {name}={value}" for name, value in OPTIONS)
CONNECT_TIMEOUT = ("ConnectTimeout", "30")  # seconds; Ansible gives its own to ssh, of 10 s
