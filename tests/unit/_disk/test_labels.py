# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""SELinux's labels that the state directory needs, and the rules that are missing. The decision alone: no machine of
these tests has a kernel with SELinux."""

from __future__ import annotations

import re

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import labels as room

UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("_base", room.CONTENT),
        (f"_base/{'a' * 64}.raw", room.CONTENT),
        (f"instances/{UUID}", room.IMAGES),
        (f"instances/{UUID}/disk", room.IMAGES),
        (f"instances/{UUID}/disk.rescue", room.IMAGES),
        (f"instances/{UUID}/disk.config", room.CONTENT),
        (f"instances/{UUID}/kernel", room.CONTENT),
        (f"instances/{UUID}/ramdisk.rescue", room.CONTENT),
        (f"volumes/{UUID}", room.IMAGES),
        (f"snapshots/{UUID}", room.IMAGES),
        ("facts", None),
        ("networks/br100/hosts", None),  # dnsmasq's, no guest's
    ],
)
def test_what_a_path_is_labelled(path: str, label: str | None) -> None:
    last = None
    for rule in room.labels("/srv/nova+lite/"):
        if re.fullmatch(rule.pattern, f"/srv/nova+lite/{path}"):
            last = rule.type
    assert last == label


def test_only_what_is_missing_or_differs_is_set() -> None:
    rules = (("/a(/.*)?", "one_t"), ("/b", "two_t"), ("/c", "one_t"))
    kept, changed, new = labels = [room.Label(*rule) for rule in rules]
    listing = (
        "/a(/.*)?                  all files          system_u:object_r:one_t:s0 \n"
        "/b                        all files          system_u:object_r:one_t:s0\n"
        "/c                        directory          system_u:object_r:one_t:s0\n"
        "/other                    all files          <<None>>\n"
    )
    assert room.missing(labels, listing) == [("-m", changed), ("-a", new)]
    assert room.present(labels, listing) == [kept]  # the others are the operator's own
    assert room.missing(labels, "") == [("-a", kept), ("-a", changed), ("-a", new)]
