# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Block Storage API, version 3, as clients of OpenStack Cinder speak it.

Volumes are recorded here and made by jobs. There are no backups, transfers, groups or consistency groups.
"""

from __future__ import annotations

import sys

from flask import Flask

from ...settings import Settings
from ...web import services
from .blueprint import volume, volume_versions


def register(app: Flask, settings: Settings) -> None:
    services.import_routes(sys.modules[__name__])
    services.register(app, volume_versions, volume)
