# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Image API, version 2, as clients of OpenStack Glance speak it.

Images come in here, as streams into the store, or by the module `image`, which knows where the operator has them.
"""

from __future__ import annotations

import importlib
import pkgutil

from flask import Flask

from ...settings import Settings
from . import transfers
from .blueprint import image, image_versions


def register(app: Flask, settings: Settings) -> None:
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("routes"):
            importlib.import_module(f"{__name__}.{module.name}")
    app.extensions[transfers.EXTENSION] = transfers.slots(settings)
    app.register_blueprint(image_versions)
    app.register_blueprint(image)
