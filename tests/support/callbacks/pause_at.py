# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Have a run of ansible-playbook stand still before a play, until it is sent SIGCONT."""

from __future__ import annotations

import os
import pathlib
import signal
import typing as t

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = r"""
name: pause_at
type: aggregate
short_description: Stands still before a play
description: [Makes the file PAUSE_FILE before the play PAUSE_AT, and stops the process until somebody has it go on.]
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "pause_at"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_play_start(self, play: t.Any) -> None:
        if play.get_name() == os.environ["PAUSE_AT"]:
            pathlib.Path(os.environ["PAUSE_FILE"]).touch()
            os.kill(os.getpid(), signal.SIGSTOP)
