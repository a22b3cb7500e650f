# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Image API, version 2, as clients of OpenStack Glance speak it: as far as Compute's clients need it.

Images are looked at, described and removed here. Their files come in by the module `image`.
"""

from __future__ import annotations

import importlib
import pkgutil

from flask import Flask

from ..settings import Settings
from .blueprint import image, image_versions


def register(app: Flask, settings: Settings) -> None:
    for found in pkgutil.iter_modules(__path__):
        if found.name.startswith("routes"):
            importlib.import_module(f"{__name__}.{found.name}")
    app.register_blueprint(image_versions)
    app.register_blueprint(image)
