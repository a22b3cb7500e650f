# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ..modules import orphans
from ..plugin_utils._host_scan_action import HostScanAction


class ActionModule(HostScanAction):
    module = orphans
