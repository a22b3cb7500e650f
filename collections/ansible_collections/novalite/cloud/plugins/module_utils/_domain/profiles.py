# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The AppArmor profile that libvirt writes for a domain. It unloads it with the guest's end, but leaves the file."""

from __future__ import annotations

import contextlib
import os
import uuid as uuids

DIRECTORY = "/etc/apparmor.d/libvirt"


def forget(uuid: str) -> None:
    """Remove the profile of the domain with this UUID, which is gone. Where there is no AppArmor, there is none."""
    profile = os.path.join(DIRECTORY, f"libvirt-{uuids.UUID(uuid)}")
    for path in (profile, f"{profile}.files"):
        with contextlib.suppress(OSError):  # no such file; or not root, and then it stays and harms nobody
            os.unlink(path)
