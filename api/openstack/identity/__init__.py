# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Identity v3: who one is, for which project or domain, and where the other services are.

Four roles have rights (api/web/operations.py); others are names that clients may give.
"""

from __future__ import annotations

from flask import Flask

from ...settings import Settings
from ...web import services
from . import (
    routes_credentials,
    routes_domains,
    routes_kept_credentials,
    routes_projects,
    routes_roles,
    routes_tokens,
    routes_trusts,
    routes_users,
)


def register(app: Flask, settings: Settings) -> None:
    modules = (
        *(routes_tokens, routes_projects, routes_users, routes_domains, routes_roles),
        *(routes_credentials, routes_kept_credentials, routes_trusts),
    )
    services.register(app, __name__, routes_tokens.discovery, *(module.service for module in modules))
