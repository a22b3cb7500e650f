# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action of the controller modules that need no other: theirs are links to this file.

Not redirects in meta/runtime.yml: Ansible takes redirected actions for one, and gives the `module_defaults` of one of
the modules to all of them.
"""

from __future__ import annotations

import importlib

from ..plugin_utils._ledger_action import LedgerAction


class ActionModule(LedgerAction):
    module = importlib.import_module(f"..modules.{__name__.rpartition('.')[2]}", __package__)
