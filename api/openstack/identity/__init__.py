# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Identity v3: who one is, for which project, and where the other services are.

There is one domain, `default`, and there are four roles; what Keystone has beyond that, these clients do not need.
"""

from __future__ import annotations

from flask import Flask

from ...settings import Settings
from ...web import services
from . import routes_credentials, routes_projects, routes_tokens


def register(app: Flask, settings: Settings) -> None:
    modules = (routes_tokens, routes_projects, routes_credentials)
    services.register(app, __name__, routes_tokens.discovery, *(module.service for module in modules))
