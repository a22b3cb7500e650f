# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A deadline for tests that wait for what comes. It says nothing of speed: a machine may be many times busier than
usual, and who waits in vain may do so for minutes, since that is a failure whenever it is said."""

from __future__ import annotations

GENEROUS = 600.0  # seconds
