# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # Of modules that change a host; each says what its diff shows
    DOCUMENTATION = r"""
author: [novalite contributors (@novalite)]
attributes:
  check_mode:
    support: full
    description: Reports what would change and changes nothing.
  diff_mode:
    support: full
"""

    # Of those among them that make and remove something; each says what is removed
    STATE = r"""
options:
  state:
    type: str
    choices: [present, absent]
    default: present
"""
