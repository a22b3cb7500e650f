# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The blueprints of the Compute API: who asks, and in which version. Faults are dialects.fault's."""

from __future__ import annotations

from ...web import services
from . import microversions

compute_versions = services.Service("compute_versions", "/compute")
compute = services.Service("compute", "/compute/v2.1")
compute_legacy = services.Service("compute_legacy", "/compute/v2.1")  # NOVALITE_API_LEGACY=off leaves it out
for _service in (compute, compute_legacy):
    _service.blueprint.before_request(microversions.negotiate)
    _service.blueprint.after_request(microversions.announce)
