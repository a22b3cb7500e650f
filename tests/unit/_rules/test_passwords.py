# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A guess at a password costs what OWASP advises, also where there is no such user. Other tests hash more cheaply."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._rules import passwords

COST = "scrypt:32768:8:1$"  # 32 MiB


def test_a_guess_is_costly() -> None:
    passwords._of_nobody.cache_clear()
    assert passwords.hash_password("x").startswith(COST) and passwords._of_nobody().startswith(COST)
    passwords._of_nobody.cache_clear()
