# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The blueprints of the Compute API: who asks, and in which version. Faults are dialects.fault's."""

from __future__ import annotations

import typing as t

from flask import Blueprint, Response

from .. import policy
from . import microversions

Answer = tuple[t.Any, int]

compute_versions = Blueprint("compute_versions", __name__, url_prefix="/compute")
compute = Blueprint("compute", __name__, url_prefix="/compute/v2.1")
compute.before_request(policy.guard)
compute.before_request(microversions.negotiate)


@compute.after_request
def _end(response: Response) -> Response:
    microversions.announce(response)
    return response
