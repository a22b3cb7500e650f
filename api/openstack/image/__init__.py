# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Image API, version 2, as clients of OpenStack Glance speak it.

Images come in here, as streams into the store, or by the module `image`, which knows where the operator has them.
"""

from __future__ import annotations

from flask import Flask

from ...settings import Settings
from ...web import services
from . import transfers
from .blueprint import image, image_versions


def register(app: Flask, settings: Settings) -> None:
    app.extensions[transfers.EXTENSION] = transfers.slots(settings)
    services.register(app, __name__, image_versions, image)
