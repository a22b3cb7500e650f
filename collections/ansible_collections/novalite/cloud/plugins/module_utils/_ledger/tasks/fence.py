# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `fence`: the power of a host by its fence agent. What follows from the answer is the watcher's to decide;
the ledger is not opened, for nothing may be held while a power supply takes its time."""

from __future__ import annotations

import dataclasses

from ..._fencing.power import Answer, Supply
from ..._json import JsonMapping, JsonObject


def fence(params: JsonMapping, check_mode: bool) -> JsonObject:
    """Operation of the module `fence`: see its documentation for `params` and what is returned. Raises NovaliteError
    for an agent, or parameters, that cannot be used; a device that fails is an answer."""
    supply = Supply(params["host"], params["agent"], params["parameters"], params["timeout"])
    action = "validate" if check_mode and params["action"] == "off" else params["action"]
    answer: Answer = getattr(supply, action)()
    return {"changed": answer.off, "host": params["host"], "epoch": params["epoch"], **dataclasses.asdict(answer)}


fence.opens_by_itself = True  # type: ignore[attr-defined]  # see _ledger_module.run_operation
