# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Block Storage API, version 3, as clients of OpenStack Cinder speak it.

Volumes are recorded here and made by jobs. There are no groups or consistency groups.
"""

from __future__ import annotations

from flask import Flask

from ...settings import Settings
from ...web import services
from .blueprint import volume, volume_versions


def register(app: Flask, settings: Settings) -> None:
    services.register(app, __name__, volume_versions, volume)
