# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A copy of a guest's disks to a second place, as both hosts take it, by a request in JSON, with the Python that they
have. The way between them is a command of the request's, such as tar."""

from __future__ import annotations

import json
import os
import shutil
import sys
import typing as t

import libvirt

from ansible_collections.novalite.cloud.plugins.module_utils._backup.live import Scratch
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._replica import delta, sending
from ansible_collections.novalite.cloud.plugins.module_utils._replica.copies import Place, record_of


def run(request: t.Mapping[str, t.Any]) -> t.Any:
    """Send what changed, and have it received; returns what the ledger keeps of it, and where the disks are."""
    libvirt.registerErrorHandler(lambda context, error: None, None)
    place = Place(request["second"], request["server"])
    staging = os.path.join(request["second"], "incoming")
    current = place.settle()
    there = None if current is None else {"manifest": current.without_definition().line().decode()}
    shutil.rmtree(staging, ignore_errors=True)
    os.makedirs(staging)
    source = sending.Source(request["server"], request["copy"], request["first"])
    scratch = Scratch(request["scratch"], 64 << 20, 0)
    argv = [word.replace("STAGING", staging) for word in request["argv"]]
    connection = libvirt.open("qemu:///system")
    parent = None if there is None else delta.parent_of(there)
    sending.send(connection, source, argv, parent, scratch, "hv2 has no copy")
    arrived = place.accept(staging)
    current = place.settle()
    assert current is not None
    files = {disk: os.path.join(place.root, current.directory, file) for disk, file in current.files.items()}
    return {**record_of(current, arrived.moved), "files": files}


if __name__ == "__main__":
    try:
        print(json.dumps({"answer": run(json.load(sys.stdin))}))
    except NovaliteError as error:
        print(json.dumps({"error": str(error)}))
