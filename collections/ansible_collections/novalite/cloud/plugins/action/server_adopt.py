# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ..modules import server_adopt
from ..plugin_utils._ledger_action import LedgerAction


class ActionModule(LedgerAction):
    module = server_adopt
