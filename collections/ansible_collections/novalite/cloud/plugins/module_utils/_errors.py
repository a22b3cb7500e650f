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


class TooLargeError(NovaliteError):
    """More data than there is room for, or than is allowed."""


class BrokenOffError(NovaliteError):
    """The data ended before their end."""


class OtherRequestError(ConflictError):
    """A client's token that stands for another request."""


class PortLedToError(ConflictError):
    """Another floating IP of the pool leads to the same address of the port."""


class DefaultTakenError(ConflictError):
    """Another network is the default one."""


class AddressInUseError(ConflictError):
    """An address that was asked for belongs to another."""


class PoolExhaustedError(ConflictError):
    """A network has too few addresses left."""


class UnreachableError(NotFoundError):
    """A port's network has no router to the pool of a floating IP."""

    def __init__(self, pool_uuid: str, network_uuid: str, port_id: str) -> None:
        super().__init__(
            f"External network {pool_uuid} is not reachable from the network {network_uuid}. Therefore, cannot "
            f"associate Port {port_id} with a Floating IP."
        )


NAMED = 5  # of each kind that is still there, in an error's text


class HostInUseError(ConflictError):
    """A compute host that cannot do what it would do empty; `instances`, `moves` and `volumes` are the names of what is
    there, `refused` what it cannot do."""

    def __init__(self, host: str, instances: list[str], moves: list[str], volumes: list[str], refused: str) -> None:
        self.instances, self.moves, self.volumes = instances, moves, volumes
        kinds = (("instances", instances), ("moves that are not done", moves), ("volumes", volumes))
        there = "; ".join(f"{kind}: {_some(names)}" for kind, names in kinds if names)
        super().__init__(
            f"compute host '{host}' {refused}, for it has {there}. Move or delete them "
            "(host_evacuate.yml, terminate.yml, volumes.yml) and run again"
        )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


class DefaultGroupError(ConflictError):
    """A project has one default group, which stays."""
