# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Block Storage API, version 3, as far as Compute's clients ask it: limits, quotas, zones, and empty lists.

There are no volumes yet; whoever wants to make one is told so.
"""

from __future__ import annotations

from flask import Flask

from ..settings import Settings
from .routes import volume, volume_versions


def register(app: Flask, settings: Settings) -> None:
    app.register_blueprint(volume_versions)
    app.register_blueprint(volume)
