# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Samples of a host and a guest, as a worker would have kept them by now: the guest rests in every third hour."""

from __future__ import annotations

import math
import time
import typing as t

from flask import Flask

from ansible_collections.novalite.cloud.plugins.module_utils._samples.rings import Samples

CORES, MEMORY, PACE = 0.5, 256 * 2**20, 3 * 2**20  # of the guest, while it works


def measure(app: Flask, host: str, uuid: str, hours: int = 3) -> float:
    """Keep samples of so many hours, one in a minute, of which half an hour was missed; return the time of the last."""
    samples, now = Samples(str(app.extensions["settings"].home)), time.time()
    seconds = sent = 0.0
    for minute in range(60 * hours + 1):
        if minute // 60 % 3 < 2:
            seconds, sent = seconds + 60 * CORES, sent + 60 * PACE * (1 + math.sin(minute / 9)) / 2
        if 40 <= minute < 70:
            continue
        counted: dict[str, t.Any] = {
            **{"cpu": seconds, "memory": MEMORY, "net_sent": sent, "net_received": sent / 2, "disk_read": 0},
            **{"disk_written": sent / 3, "cpu_pressure": seconds / 20, "io_pressure": 0.0},
        }
        entry = {"run": "1", "clock": 60.0 * minute, "values": counted}
        of_host = {**entry, "values": {**counted, "cpu": 3 * seconds, "memory": 8 * MEMORY}}
        answer = {"host": of_host, "guests": [{**entry, "uuid": uuid}], "complaints": []}
        samples.record({host: answer}, {uuid}, now - 60 * (60 * hours - minute))
    return now
