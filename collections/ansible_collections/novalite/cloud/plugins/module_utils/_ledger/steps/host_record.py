# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `host_record`: what a host keeps of the ledger."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..compute import shelving
from ..compute.slices import Slicer
from ..db import tables


def host_record(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Operation `host_record`: what `params["host"]` is to keep, by UUID `records` of instances, those of `adopted`
    ones and of `shelved` ones, which are on no host, and its own `host_record`."""
    i = tables.instance.c
    slicer = Slicer(connection)
    here = sa.select(i.uuid).where(i.host == params["host"], i.deleted == 0)
    made, adopted = (
        slicer.of_instances(connection.execute(here.where(kind)).scalars().all())
        for kind in (i.adopted.is_(None), i.adopted.is_not(None))
    )
    shelved = slicer.of_instances(shelving.keepers(connection).get(params["host"], ()))
    own = slicer.of_host(params["host"])
    return {"records": made, "adopted": adopted, "shelved": shelved, "host_record": own}
