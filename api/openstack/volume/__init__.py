# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Block Storage API, version 3, as clients of OpenStack Cinder speak it.

Volumes are recorded here and made by jobs. There are no backups, transfers, groups or consistency groups.
"""

from __future__ import annotations

import importlib
import pkgutil

from flask import Flask

from ...settings import Settings
from .blueprint import volume, volume_versions


def register(app: Flask, settings: Settings) -> None:
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("routes"):
            importlib.import_module(f"{__name__}.{module.name}")
    app.register_blueprint(volume_versions)
    app.register_blueprint(volume)
