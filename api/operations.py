# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger's operations, as a request carries them out: what one refuses is the asker's fault."""

from __future__ import annotations

import contextlib
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ImageRefusedError, NovaliteError

from .errors import BadRequestError


@contextlib.contextmanager
def asked() -> t.Iterator[None]:
    """Within, an error without a kind of its own is about what was asked for, not about the ledger's state."""
    try:
        yield
    except NovaliteError as error:
        if type(error) in (NovaliteError, ImageRefusedError):
            raise BadRequestError(str(error)) from None
        raise
