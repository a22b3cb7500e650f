# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on tags of networks, and of what belongs to them."""

from __future__ import annotations

import typing as t

from ...network.resource_tags import replace_tags
from ...queries.lookups import take_turns_at
from ...queries.network.network_records import Network
from ...queries.network.subnet_pool_records import SubnetPool
from ...queries.network.tag_records import tags_of
from ..call import Call
from .networks import check_changes
from .pools import check_owner

Owned = t.Union[Network, SubnetPool]


def change(
    call: Call, number: str, update: t.Callable[[t.Collection[str]], t.Collection[str]], of: Owned | None
) -> None:
    """Make of the resource's tags what `update` makes of them. `of`: the network or the subnet pool that it is, or is
    of, which others see, too. Raises ForbiddenError, and as resource_tags.replace_tags()."""
    if isinstance(of, Network):
        check_changes(call, of, ("tags",))
    elif of is not None:
        check_owner(call, of)
    take_turns_at(call.connection, number)
    before = tags_of(call.connection, [number]).get(number, [])
    replace_tags(call.connection, number, update(before))
