# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images that the controller downloads for hosts which cannot: each once, however many hosts and playbooks ask."""

from __future__ import annotations

import os

from .._errors import NovaliteError
from .._host import locked
from . import layout
from .cache import Image, Rules, fetch_verified


def downloaded(image: Image, directory: str, rules: Rules) -> str:
    """The path in `directory` of the downloaded `image`, named by its checksum; waits for another run's download.

    Its format is not looked at: that is for the host, which has to open it. Raises NovaliteError.
    """
    key = layout.cache_key(image.checksum)
    path = os.path.join(directory, key)
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        # Locks of its own: this may be another user than root.
        with locked(f"{key}.lock", timeout=rules.timeout, directory=directory):
            if not os.path.exists(path):
                fetch_verified(image, f"{path}.part", rules)
                os.rename(f"{path}.part", path)
    except OSError as error:
        raise NovaliteError(f"{image} cannot be stored in {directory} on the controller: {error.strerror}") from error
    return path
