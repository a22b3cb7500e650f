# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # Of modules that look, and change nothing
    DOCUMENTATION = r"""
attributes:
  check_mode:
    support: full
    description: This module never changes anything.
  diff_mode:
    support: none
    description: This module never changes anything.
"""
