# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute hosts as tenants may see them: by ids that are another project's none, as Nova shows them with servers."""

from __future__ import annotations

import functools
import hashlib
import re
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.explain import without_reasons


@functools.lru_cache(maxsize=4096)
def host_id(project_id: str, host: str | None) -> str:
    """Return a hash that tells a project which of its servers share a host, and nothing else."""
    return "" if host is None else hashlib.sha224(f"{project_id}{host}".encode()).hexdigest()


class HostNameMask:
    """Puts a project's ids in the place of hosts' names, wherever these are in an answer."""

    def __init__(self, names: t.Iterable[str], project_id: str) -> None:
        self._ids = {name: host_id(project_id, name) for name in names}
        # the longest first: one name may begin with another
        known = "|".join(re.escape(name) for name in sorted(self._ids, key=len, reverse=True))
        self._names = re.compile(rf"(?<![\w.-])(?:{known})(?![\w-]|\.\w)") if known else None

    def over(self, value: t.Any) -> t.Any:
        """`value`, which is as JSON has it, with the keys of its objects, too."""
        if self._names is None:
            return value
        if isinstance(value, str):
            return self._names.sub(lambda match: self._ids[match[0]], without_reasons(value))
        if isinstance(value, dict):
            return {self.over(key): self.over(part) for key, part in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.over(part) for part in value]
        return value

    def lift(self, shown: str) -> str:
        """The host of which a project sees the id `shown`; any other text becomes no host's name."""
        return next((name for name, known_id in self._ids.items() if known_id == shown), "")


class NoHostNameMask(HostNameMask):
    """Mask of host names for administrators, which hides nothing."""

    def __init__(self) -> None:
        super().__init__((), "")

    def lift(self, shown: str) -> str:
        return shown


def host_name_mask(connection: Connection, project_id: str | None) -> HostNameMask:
    """`project_id` is whose objects the caller sees; None: everybody's, who is an administrator."""
    if project_id is None:
        return NoHostNameMask()
    return HostNameMask(lookups.compute_host_names(connection), project_id)


def veil_faults(connection: Connection, reach: str | None, records: t.Sequence[dict[str, t.Any]]) -> None:
    """Take hosts and their sizes out of the faults of `records` (servers or snapshots), unless `reach` is None.

    Nova, too, shows members a fault's message, and its details to administrators alone.
    """
    faulty = [record for record in records if record["fault"]]
    if reach is None or not faulty:
        return
    hidden = host_name_mask(connection, reach)
    for record in faulty:
        record["fault"] = {**record["fault"], "message": hidden.over(str(record["fault"].get("message", "")))}
