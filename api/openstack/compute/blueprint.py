# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The blueprints of the Compute API: who asks, and in which version. Faults are dialects.fault's."""

from __future__ import annotations

import typing as t

from flask import Blueprint

from ...web import policy
from . import microversions

Answer = tuple[t.Any, int]

compute_versions = Blueprint("compute_versions", __name__, url_prefix="/compute")


def _blueprint(name: str) -> Blueprint:
    blueprint = Blueprint(name, __name__, url_prefix="/compute/v2.1")
    blueprint.before_request(policy.guard)
    blueprint.before_request(microversions.negotiate)
    blueprint.after_request(microversions.announce)
    return blueprint


compute = _blueprint("compute")
compute_legacy = _blueprint("compute_legacy")  # NOVALITE_API_LEGACY=off leaves it out
