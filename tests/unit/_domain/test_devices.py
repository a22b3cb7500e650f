# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._domain.guest import (
    NAMES,
    choose_device,
    next_device,
    own_devices,
)
from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError

FLAVOR = {"ephemeral_gb": 0, "swap_mb": 0}


@given(
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.lists(st.one_of(st.none(), st.sampled_from([*NAMES, "/dev/vdc", "/dev/vdx", "sdb", "/dev/sdc"])), max_size=30),
)
def test_no_two_disks_of_a_guest_have_one_name(
    ephemeral: bool, swap: bool, drive: bool, wishes: list[str | None]
) -> None:
    flavor = {"ephemeral_gb": int(ephemeral), "swap_mb": int(swap)}
    taken = list(own_devices(flavor, drive))
    assert taken[0] == "vda"
    for wish in wishes:
        name = (wish or "").rpartition("/")[2]
        try:
            device = choose_device(taken, wish)
        except ConflictError:
            assert name in taken or set(NAMES) <= set(taken)
            continue
        assert device in NAMES and device not in taken
        if name in NAMES:
            assert device == name  # a wish that can be fulfilled is
        else:
            assert device == next(candidate for candidate in NAMES if candidate not in taken)  # the first free one
        taken.append(device)


@pytest.mark.parametrize("wish", ["", "/dev/", "vd", "vd0", "/dev/vda1", "../vdb", "vdb\n", "/dev/mapper/x"])
def test_what_is_no_device_name_is_refused(wish: str) -> None:
    with pytest.raises(NovaliteError, match="invalid"):
        choose_device({"vda"}, wish)


def test_the_root_disk_is_never_given_away() -> None:
    assert next_device([]) == "vdb"
    with pytest.raises(ConflictError, match="in use"):
        choose_device(own_devices(FLAVOR, False), "/dev/vda")
