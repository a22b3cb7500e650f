# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables of the playbooks that look after a cloud: its hosts, its ledger, its backups, what dies and what drifts."""

from __future__ import annotations

from ..module_utils._healing import balancing
from ..module_utils._rules import ha_wishes
from ._playbook_words import (
    EITHER,
    HOST,
    KEEP,
    MOVE,
    PROJECT,
    REPORT,
    RESTORE,
    SCHEDULING,
    SERVERS,
    SHUTDOWN,
    STATES,
    TAKEOVER,
    UUIDS,
    WAIT,
    Playbook,
    of_servers,
    options_named,
)
from ._settings import Variable

_BACKUPS = ("server_action", "server_backup")  # steps
UPKEEP = {
    "backup": of_servers(
        KEEP,
        {"backup": Variable("name of the backup"), "full_backup": Variable("take all that the disks hold", "bool")},
        steps=_BACKUPS,
    ),
    "backup_delete": of_servers({"backup": Variable("name or id of the backup")}, steps=_BACKUPS),
    "backup_due": Playbook({}, steps=("backup_policy", *_BACKUPS)),
    "backup_files": Playbook(
        {
            "backup": Variable("name or id of the backup"),
            "disk": Variable("disk of the backup, such as vdb; the first one, if left out"),
            "partition": Variable("number of the partition; that of the largest file system, if left out", "int"),
            "path": Variable("directory or file; /, if left out"),
            "paths": Variable("list of directories and files", "list"),
            "into": Variable("new directory of the controller for them; without it, they are listed"),
            "max_mib": Variable("MiB that they have at most; 1024, if left out", "int"),
            **PROJECT,
        },
        (("backup",),),
        instead={"paths": ("path",)},
    ),
    "backup_forget": Playbook({"backup": Variable("id of the backup"), **PROJECT}, (("backup",),)),
    "backup_policy": Playbook(
        {
            "policy": Variable("name of the policy"),
            "policies": Variable("list of policies", "list"),
            "policy_state": Variable("absent: delete it", choices=STATES),
            "every": Variable("time between two backups: hourly, daily, weekly, monthly, or 12h"),
            "verify_every": Variable("time between two comparisons of the newest backup, likewise, or never"),
            "boot_every": Variable("time between two boots of the newest full backup, likewise; weekly, if left out"),
            "server": Variable("name of the server that it is for"),
            "flavor": Variable("name of the flavor that it is for"),
            **PROJECT,
            **KEEP,
        },
        (("policy", "policies"),),
        hosts=False,
        instead={"policies": ("policy", "every", "verify_every", "boot_every", "server", "flavor", *KEEP)},
    ),
    "backup_restore": of_servers(SHUTDOWN, WAIT, {"backup": Variable("name or id of the backup")}),
    "backup_restore_volume": Playbook(
        {
            "backup": Variable("name or id of the backup"),
            "backup_disk": Variable("disk of the backup, such as vdb, or the id of the volume that it was"),
            "volume": Variable("name of the new volume; those of the server and the disk, if left out"),
            "volume_type": Variable("type of the volume", aliases=("type",)),
            **PROJECT,
        },
        (("backup",), ("backup_disk",)),
    ),
    "backup_verify": of_servers(
        {
            "backup": Variable("name or id of the backup; the newest, if left out"),
            "boot": Variable("boot it in a sandbox; without a name, the newest full one", "bool"),
            "boot_timeout": Variable("seconds that its guest gets to be up", "int"),
        },
        steps=_BACKUPS,
    ),
    "balance": Playbook(
        {
            "balance_mode": Variable("whether servers are moved", choices=balancing.MODES),
            "max_moves": Variable("moves at most", "int"),
            "max_gib": Variable("GiB that all moves send at most", "int"),
            "cooldown": Variable("seconds in which a server is not moved twice", "int"),
            "balance_watch": Variable("take a turn beside the watch, as a timer does", "bool"),
            "balance_every": Variable("seconds between the beginnings of two turns", "int"),
            **SCHEDULING,
        }
    ),
    "evacuate": Playbook(
        {**MOVE, "from_host": Variable("the host that is dead: all of its servers", aliases=("from",))},
        (("server", "servers", "uuids", "from_host"),),
        instead={**EITHER, "from_host": ("uuids", "servers", "server", "count")},
    ),
    "fence_test": Playbook({"host": HOST["host"]}, (("host",),)),
    "ha": Playbook(
        {
            "ha_state": Variable("what is decided", choices=("armed", "disarmed", "confirmed")),
            "host": HOST["host"],
            "confirmed_by": Variable("who says so"),
        },
        (("ha_state",),),
        hosts=False,
    ),
    "host_look": Playbook({"host": HOST["host"]}, (("host",),)),
    "rolling": Playbook(
        {
            "task": Variable("playbook that works on each host, which it is limited to"),
            "only_hosts": Variable("the only compute hosts to maintain", "list", commas=True),
            "rolling_anew": Variable("forget a maintenance that was not finished", "bool"),
            **TAKEOVER,
        }
    ),
    "host_evacuate": Playbook({**HOST, "reason": Variable("why the host is closed")}, (("host",),)),
    "host_restore": Playbook({**HOST, "bring_back": Variable("bring back what was there", "bool")}, (("host",),)),
    "ledger_backup": Playbook(
        {
            "ledger_file": Variable("file that the ledger is copied to", aliases=("file",)),
            "keep_backups": Variable("how many dated backups are kept", "int"),
            "archive_days": Variable("after how many days deleted servers leave the ledger, for a file", "int"),
        },
        hosts=False,
        changes=False,
    ),
    "ledger_export": Playbook(
        {"ledger_file": Variable("file that the text is written to", aliases=("file",))}, hosts=False, changes=False
    ),
    "ledger_import": RESTORE,
    "ledger_migrate": Playbook(
        {"revision": Variable("revision to go to; the newest by default")}, hosts=False, changes=False
    ),
    "ledger_rebuild": Playbook(
        {
            "ledger": Variable("identity of the ledger that was lost, where hosts know several"),
            "partial": Variable("go on without the hosts that do not answer", "bool"),
        },
        changes=False,
    ),
    "ledger_restore": RESTORE,
    "reconcile": Playbook(
        {
            **REPORT,
            "build_timeout": Variable("seconds of silence after which a run is taken for dead", "int"),
            "accept": Variable(
                "hosts whose guests are theirs, though the ledger has them elsewhere", "list", commas=True
            ),
        }
    ),
    "samples": Playbook({}, changes=False),
    "server_ha": Playbook(
        {
            **{name: variable for name, variable in SERVERS.items() if name not in UUIDS},
            **options_named(*ha_wishes.FIELDS),
        },
        (("server", "servers"),),
        hosts=False,
        instead={"servers": EITHER["servers"]},
    ),
    "replica": Playbook(
        {
            **{name: variable for name, variable in SERVERS.items() if name not in UUIDS},
            "every": Variable("time between two copies: hourly, daily, or 5m; hourly, if left out"),
            "host": Variable("compute host that gets the copies; the scheduler chooses, if left out"),
            "replica_state": Variable("absent: copy no more", choices=STATES),
        },
        (("server", "servers"),),
        hosts=False,
        instead={"servers": EITHER["servers"]},
    ),
    "replicate": Playbook({**SERVERS, **TAKEOVER}, instead=EITHER),
    "watch": Playbook(
        {
            "watch_recovers": Variable("start guests in this run, not by watch_recover.yml beside the rounds", "bool"),
            **SCHEDULING,
        }
    ),
    "watch_recover": Playbook({}),
}
