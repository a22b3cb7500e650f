# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images of the catalogue in the ledger: fetched and recorded when somebody names them for the first time."""

from __future__ import annotations

import typing as t

from .._errors import ImageNotFoundError, NovaliteError
from .._json import JsonMapping
from .._ledger_module import operation_of, run_operation
from .._rules.noun_options import IMAGE
from .entries import catalog
from .fetch import fetch


def record(
    missing: ImageNotFoundError, where: JsonMapping, check_mode: bool, report: t.Callable[[str], None]
) -> tuple[str, ...]:
    """Fetch the image that is `missing` from the ledger `where` (`home`, `ledger_url`), and record it for all projects.

    Returns what its operator should know. Raises `missing` where the catalogue has no such image either, NovaliteError.
    """
    images = catalog(where["home"])
    image = images.get(missing.image)
    if image is None:
        raise missing
    if check_mode:
        raise NovaliteError(
            f"image '{image.name}' is in the catalogue and not in the ledger yet: run without --check, which fetches it"
        )
    fetched = fetch(image, where["home"], report)
    entry = {**{option.name: option.default for option in IMAGE}, **image.record, "source": fetched.path}
    params = {"home": where["home"], "ledger_url": where["ledger_url"], "project": None, "state": "present"}
    run_operation(operation_of("image"), {**params, "images": [entry]}, check_mode)
    return fetched.warnings
