# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Errors that every room raises; each edge (module, action plug-in, HTTP) translates them once."""

from __future__ import annotations

from ._model.plain_text import is_plain


class NovaliteError(Exception):
    """Error in one clear line for a person: it names the offending value and says what to do. The value may be hostile:
    what would write on a terminal, or make another line, is escaped."""

    def __init__(self, message: str) -> None:
        super().__init__(
            "".join(char if is_plain(char) else char.encode("unicode_escape").decode() for char in message)
        )


class NotFoundError(NovaliteError):
    """A name or id that the ledger or the host does not know."""


class ImageNotFoundError(NotFoundError):
    """A name, `image`, that no image has; the catalogue may know one."""

    def __init__(self, message: str, image: str) -> None:
        super().__init__(message)
        self.image = image


class ConflictError(NovaliteError):
    """Another owner or a concurrent change stands in the way."""


class StateError(ConflictError):
    """A server's state does not allow an operation. `reason` is `locked`, `busy`, `state`, `no host`, `adopted` or
    `protected`; `state` its vm_state."""

    def __init__(self, message: str, *, operation: str = "", state: str = "", reason: str = "state") -> None:
        super().__init__(message)
        self.operation, self.state, self.reason = operation, state, reason


class ProtectedError(StateError):
    """A server is protected from the operation, by an attribute of EC2's."""


class InvalidVolumeError(ConflictError):
    """A volume's state, place or use does not allow what was asked for."""


class RootVolumeError(ConflictError):
    """A server cannot be without the volume that it starts from."""


class BusyError(ConflictError):
    """Others have kept the ledger for too long: nothing is wrong with what was asked, and later it may succeed."""

    retry_after = 5  # seconds


class UndoneError(BusyError):
    """The database took a transaction back in favour of another one: the same once more may succeed."""

    retry_after = 1


class BehindError(NovaliteError):
    """The ledger is older than its hosts: nothing may be changed until ledger_rebuild.yml has asked them."""

    retry_after = 60  # seconds: a person has to act first

    def __init__(self, message: str, for_tenants: str) -> None:
        super().__init__(message)
        self.for_tenants = for_tenants  # without the names of files and hosts


class ForbiddenError(NovaliteError):
    """The one who asks is known, and may not."""


class UnauthorizedError(NovaliteError):
    """The caller is unknown, or known for nothing that this needs."""


class TooManyRequestsError(NovaliteError):
    """Too many guesses, or requests, from one place."""

    def __init__(self, message: str, retry_after: int = 0) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds


class QuotaError(NovaliteError):
    """A quota would be exceeded."""


class VolumeQuotaError(QuotaError):
    """Excess of a quota of volumes, snapshots or their size; a server made with volumes has quotas of its own, too."""


class ImageRefusedError(NovaliteError):
    """An image is not what was declared: no other host would take it either."""
