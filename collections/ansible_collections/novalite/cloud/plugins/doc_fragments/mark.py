# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # What every module takes that makes something on a host which two ledgers may share
    DOCUMENTATION = r"""
options:
  ledger:
    description:
      - Identity of the ledger that the host is given this by, the C(ledger) of its plan. What is made carries it as a
        mark, and only what carries it is removed.
      - Without it, what is made is nobody's in particular, and is removed by calls without it.
    type: str
"""
