# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger's table of moves: resizes, migrations and evacuations; part of tables.py's metadata.
Beside it, the hosts that instances have left, those of a rolling maintenance, and the watch over all of them."""

from __future__ import annotations

import sqlalchemy as sa

from .schema import numbered, table

# the statuses of a move whose instance may have something on either host
OPEN = ("queued", "preparing", "migrating", "post-migrating", "finished", "confirming", "reverting", "running")
REVERTING = "reverting"
# of them, those of a move under way: the host that the instance comes to is prepared, though it is not there yet
UNDER_WAY = ("queued", "preparing", "migrating", REVERTING, "running")

migration = numbered(  # Nova's name for a move; not a revision of this schema
    "migration",
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("instance_uuid", sa.ForeignKey("instance.uuid", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("type", sa.String(16), nullable=False),  # resize | migration | live-migration | evacuation
    # queued preparing migrating post-migrating finished confirming confirmed reverting reverted running completed done
    # error cancelled
    sa.Column("status", sa.String(32), nullable=False, index=True),
    sa.Column("source_host", sa.String(255)),
    sa.Column("dest_host", sa.String(255)),
    sa.Column("old_flavor", sa.JSON, nullable=False),  # as instance.flavor
    sa.Column("new_flavor", sa.JSON, nullable=False),
    sa.Column("old_vm_state", sa.String(16), nullable=False),  # what a revert leads back to
    sa.Column("reason", sa.String(32)),  # maintenance: host_restore.yml brings it back
    sa.Column("user_id", sa.String(32)),
    sa.Column("project_id", sa.String(32)),
    sa.Column("message", sa.Text),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
    sa.CheckConstraint("type IN ('resize', 'migration', 'live-migration', 'evacuation')", name="type"),
)

# Written in the transaction by which an instance leaves a host, and removed by the one by which it comes there again:
# what a host still has of it afterwards is a leftover. No key to instance: it outlives the instance's row.
departure = table(
    "departure",
    sa.Column("instance_uuid", sa.String(36), primary_key=True),
    sa.Column("host", sa.String(255), primary_key=True),
    sa.Column("reason", sa.String(32), nullable=False),  # deleted evacuated moved reverted retried shelved
    sa.Column("left_at", sa.BigInteger, nullable=False),
)

rolling_host = table(  # from the beginning of a rolling maintenance to its end
    "rolling_host",
    sa.Column("host", sa.String(255), primary_key=True),
    sa.Column("task", sa.String(255), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),  # waiting | under way | worked | done
)

# Times of the watch are seconds of the ledger's clock, with fractions.
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
    # the most that the last answer and the looks since then said of it
    sa.Column("switch_s", sa.Float, nullable=False, server_default="0"),
    # the host's own clock at its last answer: {"boot_id", "seconds"}
    sa.Column("reading", sa.JSON(none_as_null=True)),
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
    # PostgreSQL's advisory lock that the owner's processes hold; null: they hold none
    sa.Column("lock", sa.Integer),
    # the round that is under way: two on one controller would count each other's looks
    sa.Column("round", sa.String(36)),
    sa.Column("round_until", sa.Float, nullable=False, server_default="0"),
    # when the balance was looked at, and what was suggested then: {"plan", "at", "moves", "text"}
    sa.Column("balance_at", sa.Float, nullable=False, server_default="0"),
    sa.Column("balance", sa.JSON(none_as_null=True)),
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
