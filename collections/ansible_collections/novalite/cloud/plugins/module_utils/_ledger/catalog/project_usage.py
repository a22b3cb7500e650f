# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a project uses of its quotas. Reads only."""

from __future__ import annotations

import sqlalchemy as sa

from ..db.tables import floating_ip, image, keypair, network, project, security_group, server_group
from ..db.tables_networking import port, router, subnet
from ..queries.usage import usage
from ..queries.volume_views import used as used_by_volumes
from . import image_states


def is_project(connection: sa.Connection, project_id: str) -> bool:
    return connection.execute(sa.select(project.c.id).where(project.c.id == project_id)).first() is not None


def used(connection: sa.Connection, project_id: str) -> dict[str, int]:
    """How many a project has of what is counted for the project as a whole, by the names of the quotas.

    Nova counts nothing for those that hold for each instance or each group: they are not in it.
    """
    found = {
        name: connection.execute(sa.select(sa.func.count()).select_from(table).where(mine)).scalar_one()
        for name, table, mine in (
            ("key_pairs", keypair, keypair.c.project_id == project_id),
            ("server_groups", server_group, server_group.c.project_id == project_id),
            ("security_groups", security_group, security_group.c.project_id == project_id),
            ("floating_ips", floating_ip, floating_ip.c.project_id == project_id),
            ("networks", network, network.c.owner == project_id),
            ("ports", port, sa.and_(port.c.project_id == project_id, port.c.kept.is_(True))),
            ("routers", router, router.c.project_id == project_id),
            ("images", image, image.c.owner == project_id),
        )
    }
    subnets = sa.select(sa.func.count()).select_from(subnet).join(network).where(network.c.owner == project_id)
    found["subnets"] = connection.execute(subnets).scalar_one()
    found["image_size_total"] = -(-image_states.used_bytes(connection, project_id) // image_states.MIB)
    return {**found, **usage(connection, project_id), **used_by_volumes(connection, project_id)}
