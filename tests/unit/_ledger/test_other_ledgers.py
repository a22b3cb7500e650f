# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts that have guests of another ledger: refused in compute_nodes.yml's first words, and chosen by no launch."""

from __future__ import annotations

import time
import typing as t
import uuid

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._domain import ledgers
from ansible_collections.novalite.cloud.plugins.module_utils._domain.compare import METADATA_NAMESPACE
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.ledger_identity import ledger_id
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.fresh_facts import fresh_hosts
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement.host_states import host_states
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.filters import other_ledger
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.options import Options
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.rows import request_of
from tests.support.cloud import Cloud
from tests.support.rows import a_flavor, an_image

ADOPTED = "<n:ledger>e-d</n:ledger><n:adopted>true</n:adopted>"


@pytest.fixture
def cloud(ledger_url: str) -> t.Iterator[Cloud]:
    opened = Cloud(ledger_url)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("mark", "made_by"),
    [
        ("", None),
        ("<n:instance xmlns:n='urn:another'><n:ledger>e-d</n:ledger></n:instance>", None),
        (f"<n:instance xmlns:n='{METADATA_NAMESPACE}'/>", None),
        (f"<n:instance xmlns:n='{METADATA_NAMESPACE}'><n:ledger>e-d</n:ledger></n:instance>", "e-d"),
        (f"<n:instance xmlns:n='{METADATA_NAMESPACE}'>{ADOPTED}</n:instance>", None),
    ],
)
def test_a_domain_is_of_the_ledger_that_made_it(mark: str, made_by: str | None) -> None:
    assert ledgers.maker(f"<domain><name>d</name><metadata>{mark}</metadata></domain>") == made_by
    assert ledgers.with_guests("test:///nosuch") == []


def test_a_host_with_guests_of_another_ledger_is_refused_before_anything_is_made_there(cloud: Cloud) -> None:
    with reading(cloud.engine) as connection:
        own = ledger_id(connection)
    cloud.run("host_identity", machines={"hv1": {"identity": {}, "marks": {}, "ledgers": [own]}})
    other = str(uuid.uuid4())
    machines = {
        name: {"identity": {}, "marks": {}, "ledgers": ledgers}
        for name, ledgers in (("hv1", []), ("hv2", [other, own]))
    }
    with pytest.raises(
        NovaliteError, match=rf"^hv2 carries guests of another ledger \({other}\).*take it out of the inv"
    ):
        cloud.run("host_identity", machines=machines)


def test_a_host_with_guests_of_another_ledger_is_never_chosen(cloud: Cloud) -> None:
    other = str(uuid.uuid4())
    domain = {"uuid": str(uuid.uuid4()), "name": "d", "state": "running", "vcpus": 1, "memory_mb": 1, "disk_gb": 0}
    facts = {"up": True, "vcpus": 8, "memory_mb": 8192, "disk_gb": 50, "traits": []}

    def refused(**more: t.Any) -> str | None:
        cloud.operate("compute_host", compute_hosts=[{"name": "hv1", **facts, "domains": [{**domain, **more}]}])
        with reading(cloud.engine) as connection:
            states, _versions = host_states(connection, int(time.time()), ["hv1"])
            fresh = fresh_hosts(connection, {"hv1": {}}, 600, int(time.time()))
        request = request_of({"uuid": "u", "name": "web", "flavor": a_flavor(), "image": an_image()})
        reason = other_ledger.passes(states[0], request, Options())
        assert (other_ledger.refused(states, request, Options()) == [0]) == (reason is not None)
        assert fresh == (["hv1"] if reason is None else [])  # it is asked again, for they may have left
        return reason

    assert refused() is None and refused(ledger=None) is None
    with reading(cloud.engine) as connection:
        assert refused(ledger=ledger_id(connection)) is None
    assert other in str(refused(ledger=other))
    assert refused(ledger=None) is None
