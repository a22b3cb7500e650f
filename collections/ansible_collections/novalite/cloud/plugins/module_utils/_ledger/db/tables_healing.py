# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger's tables of healing: health of hosts, the watcher's lease, and the journal of what it decided; part of
tables.py's metadata. Times are seconds of the ledger's clock, with fractions."""

from __future__ import annotations

import sqlalchemy as sa

from .schema import numbered, table

host_watch = table(  # health of a host (_healing/nouns.py, HostRow), and beside it what people wish
    "host_watch",
    sa.Column("host", sa.String(255), primary_key=True),
    sa.Column("state", sa.String(16), nullable=False, server_default="up"),
    sa.Column("epoch", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("since", sa.Float, nullable=False, server_default="0"),
    sa.Column("missed", sa.Integer, nullable=False, server_default="0"),
    sa.Column("missed_in_term", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("silent_since", sa.Float),
    sa.Column("looked_at", sa.Float, nullable=False, server_default="0"),
    sa.Column("answered_at", sa.Float, nullable=False, server_default="0"),
    sa.Column("heard", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("boot_id", sa.String(64), nullable=False, server_default=""),
    sa.Column("stopping", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("switch_armed", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("attempted_at", sa.Float, nullable=False, server_default="0"),
    sa.Column("proof", sa.JSON(none_as_null=True)),  # {"kind", "epoch", "at", "words"}
    sa.Column("moved", sa.JSON, nullable=False, server_default="[]"),  # UUIDs of guests
    sa.Column("note", sa.Text, nullable=False, server_default=""),
    # since when, by the monotonic clock of one boot of one controller, nothing was heard of it
    sa.Column("ticks", sa.Float, nullable=False, server_default="0"),
    sa.Column("ticks_of", sa.String(64), nullable=False, server_default=""),
    # what the fence agent answered last: {"epoch", "at", "off", "status"}
    sa.Column("fence", sa.JSON(none_as_null=True)),
    # wishes: the watcher reads them alone
    sa.Column("armed", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("means", sa.JSON, nullable=False, server_default="[]"),  # of its inventory: agent, switch
    sa.Column("confirmed_by", sa.String(255)),
    sa.Column("confirmed_heard", sa.BigInteger),
)

watch = table(  # one row: which controller watches, and whether anything is healed at all
    "watch",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("armed", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("controller", sa.String(255)),  # null: nobody watched yet
    sa.Column("expires", sa.Float, nullable=False, server_default="0"),
    sa.Column("term", sa.BigInteger, nullable=False, server_default="0"),
    # the round that is under way: two on one controller would count each other's looks
    sa.Column("round", sa.String(36)),
    sa.Column("round_until", sa.Float, nullable=False, server_default="0"),
    sa.CheckConstraint("id = 1", name="single"),
)

watch_event = numbered(  # a line for each decision, with its evidence
    "watch_event",
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("host", sa.String(255), nullable=False, index=True),
    sa.Column("event", sa.String(64), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),  # after it
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("actor", sa.String(255), nullable=False),  # a controller, or a person
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("loud", sa.Boolean, nullable=False, server_default=sa.false()),  # people must act upon it
)
