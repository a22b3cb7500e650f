# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Record the events of a run's steps as they are heard, a line of JSON each, into the file RECORD_EVENTS."""

from __future__ import annotations

import dataclasses
import json
import os
import time
import typing as t

from ansible.plugins.callback import CallbackBase

from ansible_collections.novalite.cloud.plugins.plugin_utils import _events

DOCUMENTATION = r"""
name: record_events
type: aggregate
short_description: Records the events of steps while they happen
description: [Writes them as JSON into the file of the environment variable RECORD_EVENTS.]
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "record_events"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_start(self, playbook: object) -> None:
        _events.listen(self._hear)

    def _hear(self, events: t.Sequence[_events.Event]) -> None:
        with open(os.environ["RECORD_EVENTS"], "a", encoding="utf-8") as file:
            for event in events:
                file.write(json.dumps({**dataclasses.asdict(event), "heard": time.monotonic()}) + "\n")
