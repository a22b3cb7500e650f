# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shows how far module image has read a large file."""

from __future__ import annotations

import logging

from ansible.utils.display import Display

from ..module_utils._json import JsonMapping, JsonObject
from ..module_utils._ledger_module import Judge
from ..modules import image
from ..plugin_utils._ledger_action import LedgerAction

LOG = logging.getLogger("novalite.images")


class _Shown(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        Display().display(record.getMessage())


class ActionModule(LedgerAction):
    module = image

    def operate(self, params: JsonMapping, judge: Judge | None = None) -> JsonObject:
        handler = _Shown(logging.INFO)
        LOG.addHandler(handler)
        LOG.setLevel(logging.INFO)
        try:
            return super().operate(params, judge)
        finally:
            LOG.removeHandler(handler)
