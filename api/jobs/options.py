# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of the job engine, from its environment, and the places of its files."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils import _errors
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import DEFAULT_HOME, Place, place_of

from .. import keep_alive
from ..settings import values_of

# Those of the collection whose code this is, wherever it is installed
PLAYBOOKS = pathlib.Path(_errors.__file__).resolve().parents[2] / "playbooks"

# What a playbook's environment takes over from the worker's. Everything else stays out.
INHERITED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_[A-Z]+|TZ|TMPDIR|SSH_AUTH_SOCK|SSL_CERT_(FILE|DIR)"
    r"|(HTTPS?|NO)_PROXY|(https?|no)_proxy|ANSIBLE_[A-Z_]+|VIRTUAL_ENV|PYTHONPATH"
    r"|NOVALITE_(HOME|LEDGER_URL|IMAGES|METADATA_[A-Z_]+)"
)

MAY_BE_0 = (
    *("gather_ms", "reconcile_seconds", "sample_seconds", "watch_seconds", "backup_seconds", "replicate_seconds"),
    "balance_seconds",
)


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of jobs. Each field from `runs` on is the variable NOVALITE_JOBS_<FIELD>, or the one in its comment."""

    home: str
    ledger_url: str | None = None
    inventory: str | None = None  # $NOVALITE_INVENTORY; default: what ansible.cfg says
    playbooks: str = str(PLAYBOOKS)  # $NOVALITE_PLAYBOOKS
    runs: int = 4  # at once, in all
    runs_per_worker: int = 4
    runs_per_host: int = 4
    take_ups: int = 3  # how often a run is begun again after its worker died, before it ends as failed; not deletions
    lost_after: int = 20  # seconds without a sign of life, after which a worker of another machine counts as dead
    keep_runs: int = 200  # files that lock runs, of which the newest are kept
    keep_days: int = 7  # days that they and the events of runs are kept
    keep_job_days: int = 90  # days that jobs themselves are kept after their end
    gather_ms: int = 50  # how long a first job waits for others to go with it
    reconcile_seconds: int = 0  # $NOVALITE_API_RECONCILE_SECONDS: how often all hosts are reconciled; 0 for never
    sample_seconds: int = 0  # how often hosts and guests are measured; 0 for never
    watch_seconds: int = 0  # how long between two rounds of the watch over hosts, 10 for healing; 0 for never
    backup_seconds: int = 0  # how long between two looks at which backups are due, 600 is meant; 0 for never
    replicate_seconds: int = 0  # likewise, which disks are to be copied to second hosts, 60 is meant; 0 for never
    balance_seconds: int = 0  # how long between two turns of balancing beside the watch, 600 is meant; 0 for never
    trace: str | None = None  # file that notes when each run's lock was taken and given back

    @classmethod
    def from_environment(
        cls, environ: t.Mapping[str, str] | None = None, home: str | None = None, ledger_url: str | None = None
    ) -> Options:
        """Raises NovaliteError for a number that is none. `home` and `ledger_url` go before the environment's."""
        environ = os.environ if environ is None else environ
        ledger_url = ledger_url or (None if home else environ.get("NOVALITE_LEDGER_URL")) or None
        home = home or environ.get("NOVALITE_HOME") or DEFAULT_HOME
        prefixes = dict.fromkeys(("home", "ledger_url", "inventory", "playbooks"), "") | {"reconcile_seconds": "API_"}
        names = [field.name for field in dataclasses.fields(cls)]
        variables = {name: f"NOVALITE_{prefixes.get(name, 'JOBS_')}{name.upper()}" for name in names}
        values = values_of(cls, environ, variables, MAY_BE_0)
        values |= {name: os.path.abspath(values[name]) for name in ("inventory", "playbooks") if name in values}
        values |= {"home": os.path.abspath(home), "ledger_url": ledger_url}
        return cls(**values)

    @property
    def directory(self) -> str:
        """Directory of the engine's own files: locks, sockets, what runs write."""
        return os.path.join(self.place.home, "jobs")

    @property
    def place(self) -> Place:
        """Place of the ledger, and its `home`, where more is kept beside it. Raises NovaliteError for a URL of none."""
        return place_of(self.home, self.ledger_url)

    def make_directories(self) -> None:
        for name in ("", "locks", "runs", "wake", "workers"):
            os.makedirs(os.path.join(self.directory, name), mode=0o700, exist_ok=True)

    @property
    def project(self) -> str:
        """The working directory of playbooks, whose ansible.cfg counts: this process's, or that of other playbooks."""
        return os.getcwd() if self.playbooks == str(PLAYBOOKS) else os.path.dirname(self.playbooks)

    def environment(self) -> dict[str, str]:
        """The environment of a playbook. What ansible-runner would set otherwise is set here."""
        taken = {name: value for name, value in os.environ.items() if INHERITED.fullmatch(name)}
        taken["NOVALITE_HOME"] = self.home
        if self.ledger_url:
            taken["NOVALITE_LEDGER_URL"] = self.ledger_url
        taken.setdefault("LANG", "C.UTF-8")
        taken.setdefault("ANSIBLE_HOST_KEY_CHECKING", "True")
        taken["ANSIBLE_NOCOLOR"] = "1"
        return {**taken, **keep_alive.variables(taken, self.project)}
