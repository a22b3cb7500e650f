# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on quotas: limits below what there is, and those of services that are not the caller's."""

from __future__ import annotations

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ForbiddenError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import quotas
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.quota_records import quota_limits
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volumes
from tests.support.rows import DEMO
from tests.unit._ledger.identity.conftest import Calls

VOLUMES, NETWORKS = "volume:admin", "network:quotas:update"


def test_a_limit_is_not_below_what_there_is_unless_forced(calls: Calls) -> None:
    volumes.create_volume(calls.connection, DEMO, {"name": "data", "size_gb": 1})
    with pytest.raises(NovaliteError, match=r"Quota limit 0 for volumes .* used and reserved 1"):
        quotas.set_limits(calls.operator, DEMO, {"volumes": 0})
    assert quota_limits(calls.connection, DEMO)["volumes"] == 10
    assert quotas.set_limits(calls.operator, DEMO, {"volumes": -1})["volumes"] == -1
    assert quotas.set_limits(calls.operator, DEMO, {"volumes": 0}, force=True)["volumes"] == 0
    quotas.reset(calls.operator, DEMO, ["volumes"])
    assert quota_limits(calls.connection, DEMO)["volumes"] == 10


def test_limits_of_a_service_take_its_entry_of_the_policy(calls: Calls) -> None:
    mixed = {"instances": 1, "networks": 1, "volumes": 1}
    for entries in ((), (VOLUMES,), (NETWORKS,)):
        with pytest.raises(ForbiddenError):
            quotas.set_limits(calls.of(calls.ann, *entries), DEMO, mixed)
        with pytest.raises(ForbiddenError):
            quotas.set_default_limits(calls.of(calls.ann, *entries), mixed)
        with pytest.raises(ForbiddenError):
            quotas.reset(calls.of(calls.ann, *entries), DEMO, mixed)
    assert quotas.set_limits(calls.of(calls.ann), DEMO, {"instances": 1})["instances"] == 1
    assert quotas.set_default_limits(calls.of(calls.ann, VOLUMES, NETWORKS), mixed)["networks"] == 1
