# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The blueprint of the Network API: who asks, and the types by which Neutron's clients know its errors."""

from __future__ import annotations

import functools
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import QuotaError

from ...web import services
from ...web.bodies import Answer
from ...web.dialects import neutron

network_versions = services.Service("network_versions", "/network")
network = services.Service("network", "/network/v2.0")


class NeutronError(Exception):
    """An error with the class by which Neutron's clients know it."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.neutron_type = status, kind


@network.blueprint.errorhandler(NeutronError)
def _typed(error: NeutronError) -> Answer:
    return neutron(error.status, str(error), error), error.status


@network.blueprint.errorhandler(QuotaError)
def _over_quota(error: QuotaError) -> Answer:
    return _typed(NeutronError(409, "OverQuota", str(error)))


def not_found(what: str, number: str) -> NeutronError:
    """Return Neutron's error about a `what` ("Security Group") that does not exist, or is another project's."""
    kind = f"{what.replace(' ', '')}NotFound"
    message = f"{what.capitalize()} {number[:255]} does not exist"  # of these
    return NeutronError(404, kind, message if "Security" in what else f"{what} {number[:255]} could not be found.")


def word(status: int, kind: str) -> t.Callable[[str], NeutronError]:
    """Return a function that makes an error of this kind from a message."""
    return functools.partial(NeutronError, status, kind)


refused = word(403, "PolicyNotAuthorized")
