# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import time

import pytest

from tests.api.conftest import Cloud


@pytest.fixture
def hosts(cloud: Cloud) -> list[str]:
    """hv1 with a server in zone nova, which nobody has asked for an hour; hv2, which does not answer, in zone edge."""
    known = {"facts": {"hypervisor_type": "QEMU", "hypervisor_version": 7002000}, "reserved_memory_mb": 100}
    used = {"vcpus_used": 1, "memory_mb_used": 512, "disk_gb_used": 1}
    cloud.host("hv1", last_seen_at=int(time.time()) - 3600, **known, **used)
    cloud.host("hv2", zone="edge", up=False)
    return ["hv1", "hv2"]
