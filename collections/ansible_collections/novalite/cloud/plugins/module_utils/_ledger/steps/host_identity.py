# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `host_identity`: the machines of an inventory beside those of the ledger, and new names of hosts.

In the ledger a compute host is one machine, and a machine is one compute host, whatever name and address an inventory
has for it.
"""

from __future__ import annotations

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules.records import with_diff
from ..._scheduling.filters import other_ledger
from ..db import behind
from ..db.ledger_identity import ledger_id
from ..placement.host_renaming import rename
from ..placement.machines import check_machines

ARGUMENT_SPEC = {
    # `compared` fails for a machine that is not the one that the ledger has under its name, for one that has two names,
    # and for one with guests of another ledger. `renamed` gives the host `name` the name `new_name` wherever the ledger
    # has it. Refused while the host is building, moving or otherwise changing instances.
    "state": {"type": "str", "choices": ["compared", "renamed"], "default": "compared"},
    # What `host_mark` returns of the machines, by the names that the inventory has for them.
    "machines": {"type": "dict", "required": True},
    # Names of hosts whose machines are other ones than before.
    "replaced": {"type": "list", "elements": "str", "default": []},
    "name": {"type": "str"},
    # The name under which the inventory has the host already.
    "new_name": {"type": "str"},
}
SPEC_RULES = {"required_if": [("state", "renamed", ("name", "new_name"))]}


def host_identity(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, and with `renamed`
    * `renamed`: how many records named the host, for each kind of record
    * `behind`: whether the ledger is behind its hosts; it learns of a new name all the same

    Raises NovaliteError for a machine that is not the host that it should be, ConflictError for a host that cannot have
    its new name now."""
    machines = params["machines"]
    if params["state"] == "renamed":
        name, new_name = params["name"], params["new_name"]
        if new_name not in machines:
            raise NovaliteError(
                f"'{new_name}' has not told which machine it is: put it into the inventory in place of {name}, with "
                "the same address, and run again"
            )
        renamed = rename(connection, name, new_name, machines[new_name]["identity"], machines[new_name]["marks"])
        result = {"changed": bool(renamed), "renamed": renamed, "behind": behind.refusal(connection) is not None}
        return with_diff(result, {"name": name}, {"name": new_name})
    replaced = params["replaced"]
    if unknown := sorted(set(replaced) - set(machines)):
        raise NovaliteError(
            f"replaced={unknown[0]}: there is no such compute host in the inventory, or it did not answer"
        )
    own = ledger_id(connection)
    others = {name: ", ".join(sorted(set(machine["ledgers"]) - {own})) for name, machine in machines.items()}
    if refusals := [f"{name} {other_ledger.refusal(others[name])}" for name in sorted(others) if others[name]]:
        raise NovaliteError(f"{'; '.join(refusals)}. If that ledger was lost, run ledger_rebuild.yml instead")
    check_machines(connection, {name: machine["identity"] for name, machine in machines.items()}, replaced)
    return {"changed": False}


# hosts are asked what they keep by the names that they have now, and a restored ledger has the former ones
host_identity.while_behind = True  # type: ignore[attr-defined]  # see _ledger_module.run_operation
