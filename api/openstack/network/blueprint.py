# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The blueprint of the Network API: who asks, and the types by which Neutron's clients know its errors."""

from __future__ import annotations

import functools
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import QuotaError

from ...web import services
from ...web.bodies import Answer
from ...web.dialects import NeutronError, neutron, not_found

__all__ = ["NeutronError", "not_found"]  # raised by routes

network_versions = services.Service("network_versions", "/network")
network = services.Service("network", "/network/v2.0")


@network.blueprint.errorhandler(NeutronError)
def _typed(error: NeutronError) -> Answer:
    return neutron(error.status, str(error), error), error.status


@network.blueprint.errorhandler(QuotaError)
def _over_quota(error: QuotaError) -> Answer:
    return _typed(NeutronError(409, "OverQuota", str(error)))


def word(status: int, kind: str) -> t.Callable[[str], NeutronError]:
    """Return a function that makes an error of this kind from a message."""
    return functools.partial(NeutronError, status, kind)


refused = word(403, "PolicyNotAuthorized")
