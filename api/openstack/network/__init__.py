# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Network API, version 2.0, as clients of OpenStack Neutron speak it: as far as Compute's clients need it.

Networks are the operator's (modules `network` and `floating_pool`) and can be looked at here; security groups, their
rules and floating IPs are the project's own.
"""

from __future__ import annotations

from flask import Flask

from ...settings import Settings
from ...web import services
from .blueprint import network, network_versions


def register(app: Flask, settings: Settings) -> None:
    services.register(app, __name__, network_versions, network)
