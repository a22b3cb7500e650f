# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A test's cloud: a ledger on SQLite or PostgreSQL, what is in it, and the product's operations over it."""

from __future__ import annotations

import base64
import dataclasses
import functools
import importlib
import json
import pathlib
import sys
import typing as t

import sqlalchemy as sa
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import (
    operation_of,
    plain,
    run_operation,
    spec_of,
    spec_of_step,
)
from tests.support import rows

Result = dict[str, t.Any]
SEEN_EVER = 10**10  # seconds: hosts of a test report once
_ALL = {table: sa.select(table) for table in tables.metadata.sorted_tables}


@dataclasses.dataclass(frozen=True)
class Network:
    id: int
    uuid: str
    cidr: str
    cidr_v6: str | None


def sqlite(home: pathlib.Path) -> str:
    """The URL of the ledger in a controller's home."""
    return f"sqlite:///{home}/ledger.sqlite"


@functools.cache  # to read a module's documentation takes as long as many an operation
def validator(module_name: str) -> ArgumentSpecValidator:
    """Checker of the tasks of a controller module, or of a step of ledger_step, which completes their arguments."""
    module = sys.modules[operation_of(module_name).__module__]
    if hasattr(module, "ARGUMENT_SPEC"):
        spec = spec_of_step(module)
    else:
        module = importlib.import_module(f"ansible_collections.novalite.cloud.plugins.modules.{module_name}")
        spec = spec_of(module.DOCUMENTATION, getattr(module, "NO_LOG", None))
    return ArgumentSpecValidator(spec, **getattr(module, "SPEC_RULES", {}))


def checked(module_name: str, /, **args: t.Any) -> Result:
    """The arguments of a controller module, checked and completed as Ansible does it for a task."""
    validated = validator(module_name).validate(plain(args))
    assert validated.error_messages == []
    return plain(validated.validated_parameters)


class Cloud:
    """The ledger at a URL; each statement, row and operation in a transaction of its own."""

    def __init__(self, url: str, engine: sa.Engine | None = None) -> None:
        self.url = url
        self.engine = open_ledger(url=url) if engine is None else engine

    def close(self) -> None:
        self.engine.dispose()

    def rows(self, query: t.Any) -> list[t.Any]:
        with transaction(self.engine) as connection:
            return list(connection.execute(query).all())

    def write(self, *statements: t.Any) -> None:
        with transaction(self.engine, while_behind=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def insert(self, table: sa.Table, **columns: t.Any) -> t.Any:
        """Write one row; returns the value of its (first) key."""
        with transaction(self.engine) as connection:
            return rows.insert(connection, table, **columns)

    def dump(self) -> dict[str, list[t.Any]]:
        """Everything that is in the ledger."""
        with transaction(self.engine) as connection:
            return {table.name: list(connection.execute(_ALL[table]).all()) for table in _ALL}

    def run(self, operation: str, /, *, check_mode: bool = False, **args: t.Any) -> Result:
        """Run a controller module's operation as a task does: arguments checked, one transaction."""
        params = {**checked(operation, **args), "ledger_url": self.url}
        return run_operation(operation_of(operation), params, check_mode)

    def operate(self, operation: str, /, *, check_mode: bool = False, **params: t.Any) -> Result:
        """Run an operation with `params` as they are."""
        with transaction(self.engine, check_mode) as connection:
            return operation_of(operation)(connection, params)

    def task(self, name: str, /, *, check_mode: bool = False, **args: t.Any) -> Result:
        """Run a controller module's operation with checked arguments, over the engine that is open."""
        return self.operate(name, check_mode=check_mode, **checked(name, **args))

    # --- Records as they are, whoever would have made them ---

    def project(self, name: str, project_id: str | None = None) -> str:
        with transaction(self.engine) as connection:
            return rows.add_project(connection, name, project_id)

    def host(self, name: str = "hv1", **columns: t.Any) -> str:
        with transaction(self.engine) as connection:
            rows.add_host(connection, name, **columns)
        return name

    def change_host(self, name: str, **columns: t.Any) -> None:
        self.write(sa.update(tables.compute_host).where(tables.compute_host.c.name == name).values(**columns))

    def network(self, name: str = "private", cidr: str = "10.20.0.0/24", **columns: t.Any) -> Network:
        """A network with its pool of addresses."""
        with transaction(self.engine) as connection:
            row = rows.add_network(connection, name, cidr, **columns)
        return Network(row["id"], row["uuid"], cidr, row["cidr_v6"])

    def vif(self, instance_uuid: str, network_id: int, address: str | None = None, **columns: t.Any) -> str:
        """An interface with the IPv4 address, out of the network's pool. Returns its id."""
        with transaction(self.engine) as connection:
            vif = rows.add_vif(connection, instance_uuid, network_id, **columns)
            if address is not None:
                rows.change_address(connection, address, network_id=network_id, owner=f"vif:{vif}")
        return vif

    def instance(
        self,
        project: str,
        name: str,
        host: str | None = None,
        nics: t.Sequence[tuple[t.Any, ...]] = (),
        user_data: bytes | None = None,
        files: t.Mapping[str, bytes] | None = None,
        groups: t.Sequence[int] = (),
        **columns: t.Any,
    ) -> str:
        """An instance of the project with this id; `nics` are (network, IPv4) or (network, IPv4, IPv6).

        Returns the UUID.
        """
        if user_data is not None:
            columns["user_data"] = base64.b64encode(user_data).decode()
        if files is not None:
            columns["files"] = [
                {"path": path, "content": base64.b64encode(text).decode()} for path, text in files.items()
            ]
        row = rows.an_instance(name, project_id=project, host=host, **columns)
        number, instance_uuid = self.insert(tables.instance, **row), str(row["uuid"])
        for position, (network, address, *ipv6) in enumerate(nics):
            self.vif(instance_uuid, network.id, address, position=position, ipv6=ipv6[0] if ipv6 else None)
        for group in groups:
            self.insert(tables.instance_security_group, instance_id=number, group_id=group)
        return instance_uuid

    def delete(self, instance_uuid: str) -> None:
        table = tables.instance
        self.write(sa.update(table).where(table.c.uuid == instance_uuid).values(deleted=table.c.id))

    # --- What playbooks do, step by step ---

    def server(self, *servers: Result, check_mode: bool = False, **params: t.Any) -> Result:
        return self.operate("server", check_mode=check_mode, servers=list(servers), **params)

    def state(self, *outcomes: Result, **params: t.Any) -> Result:
        return self.operate("server_state", outcomes=list(outcomes), **params)

    def info(self, **params: t.Any) -> list[Result]:
        return t.cast("list[Result]", self.operate("server_info", **params)["servers"])

    def place(self, server_uuid: str, host: str = "hv1") -> Result:
        """Give a server, which is to be built, a claim on `host`, whatever it was asked for with, and its addresses."""
        with transaction(self.engine) as connection:
            (server,) = instances_by(connection, uuids=[server_uuid])
        server |= {"request": {}, "attempts": []}
        params: Result = {"instances": [server], "limit_to": [host], "service_down_time": SEEN_EVER}
        placed = self.operate("scheduler", **params)["instances"]
        assert [instance["host"] for instance in placed] == [host]
        (instance,) = self.operate("fixed_ip", instances=placed)["instances"]
        return t.cast(Result, instance)


def size_of(answer: t.Any) -> int:
    """The length of an answer as JSON."""
    return len(json.dumps(answer, default=str))
