# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a cloud's administrators do with users: domains, groups, roles, nested projects, trusts, credentials, rules."""

from __future__ import annotations

import contextlib
import json
import pathlib
import secrets
import tempfile
import typing as t

from .cloud import Cloud
from .command import Shell
from .report import Report

PART = "identity"
SERVERS = [{"path": "/v2.1/servers/**", "method": "GET", "service": "compute"}]


def run(report: Report, cloud: Cloud) -> None:
    admin = Shell(cloud, login="openrc-admin")
    mark = secrets.token_hex(3)
    domain, role, password = f"acme-{mark}", f"auditor-{mark}", secrets.token_urlsafe(16)
    of = f"--user-domain {domain}"

    def check(words: str, expected: str = "", shell: Shell = admin) -> None:
        """Run a command; what it prints must have `expected` in it."""
        with report.step(PART, words):
            text = shell(*words.split())
            assert expected in text, f"no {expected!r} in:\n{text}"

    check(f"domain create --description x {domain}", domain)
    with report.step(PART, "user create"):
        admin("user", "create", "--domain", domain, "--password", password, "ann")
    check(f"project create --domain {domain} --tag blue --property colour=red top", "blue")
    check(f"project create --domain {domain} --parent top --tag {mark} low", mark)
    check(f"project list --tags {mark}", "low")
    check(f"project show --domain {domain} low --parents", "parents")
    check(f"project set --domain {domain} --tag green low")
    check(f"group create --domain {domain} ops", "ops")
    check(f"group add user --group-domain {domain} {of} ops ann")
    check(f"group contains user --group-domain {domain} {of} ops ann", "ann in group ops")
    check(f"role create {role}", role)
    check("implied role list", "reader")
    check(f"role add --group ops --group-domain {domain} --project top --project-domain {domain} member")
    check(f"role add --user ann {of} --project top --project-domain {domain} --inherited reader")
    check(f"role add --user ann {of} --domain {domain} {role}")
    check("role assignment list --names", f"ops@{domain}")
    check(f"role assignment list --names --effective --user ann {of} --role member", f"top@{domain}")
    check(f"role assignment list --names --effective --user ann {of} --role reader", f"low@{domain}")
    ann = {"OS_USERNAME": "ann", "OS_PASSWORD": password, "OS_USER_DOMAIN_NAME": domain.upper()}
    with _as(cloud, {**ann, "OS_PROJECT_NAME": "low", "OS_PROJECT_DOMAIN_NAME": domain}) as shell:
        check("token issue", "project_id", shell)
        check("server list", "", shell)
    with report.step(PART, "a disabled domain lets nobody in"):
        admin("domain", "set", "--disable", domain)
        with _as(cloud, {**ann, "OS_PROJECT_NAME": "top", "OS_PROJECT_DOMAIN_NAME": domain}) as shell:
            assert "HTTP 401" in shell.attempt("token", "issue").stderr
    check(f"domain delete {domain}")
    check(f"role delete {role}")
    _delegate(report, cloud, mark, check)


def _delegate(report: Report, cloud: Cloud, mark: str, check: t.Callable[..., None]) -> None:
    """Trusts and credentials of the user `demo`."""
    demo = Shell(cloud)
    with report.step(PART, "trust create"):
        demo_id, project = (demo("token", "issue", "-f", "value", "-c", name) for name in ("user_id", "project_id"))
        admin = Shell(cloud, login="openrc-admin")
        alt_id = admin("user", "show", "alt", "-f", "value", "-c", "id")
        words = ["--project", project, "--role", "member", "--impersonate", demo_id, alt_id]
        trust = demo.json("trust", "create", *words)
        with _as(cloud, {"OS_TRUST_ID": trust["id"]}, "openrc-alt", without="OS_PROJECT") as shell:
            assert shell("token", "issue", "-f", "value", "-c", "user_id") == demo_id
            shell("server", "list")
        demo("trust", "delete", trust["id"])
        with _as(cloud, {"OS_TRUST_ID": trust["id"]}, "openrc-alt", without="OS_PROJECT") as shell:
            assert "HTTP 401" in shell.attempt("token", "issue").stderr
    check("credential create --type cert demo text-" + mark, f"text-{mark}")
    with report.step(PART, "application credential create --access-rules"):
        with tempfile.TemporaryDirectory() as folder:
            rules = pathlib.Path(folder, "rules.json")
            rules.write_text(json.dumps(SERVERS))
            words = ["--access-rules", str(rules), f"app-{mark}"]
            made = demo.json("application", "credential", "create", *words)
        values = {key.lower(): value for key, value in made.items()}
        login = {
            "OS_AUTH_TYPE": "v3applicationcredential",
            "OS_APPLICATION_CREDENTIAL_ID": values["id"],
            "OS_APPLICATION_CREDENTIAL_SECRET": values["secret"],
        }
        with _as(cloud, login, without="OS_PROJECT,OS_USER,OS_PASSWORD") as shell:
            shell("server", "list", "--no-name-lookup")
            refused = shell.attempt("network", "list")
            assert refused.returncode != 0 and "401" in refused.stderr, refused.stderr
    check("access rule list", "/v2.1/servers/**", demo)
    with report.step(PART, "access rule delete"):
        demo("application", "credential", "delete", f"app-{mark}")
        for row in demo.json("access", "rule", "list"):
            demo("access", "rule", "delete", row["ID"])
        for row in Shell(cloud, login="openrc-admin").json("credential", "list", "--type", "cert"):
            if row["Data"] == f"text-{mark}":
                Shell(cloud, login="openrc-admin")("credential", "delete", row["ID"])


class _Login(Shell):
    """`openstack` with other words in its environment than a login's."""

    def __init__(self, cloud: Cloud, login: str, values: t.Mapping[str, str], without: str) -> None:
        super().__init__(cloud, login=login)
        left = tuple(filter(None, without.split(",")))
        kept = {key: value for key, value in self._environment.items() if not left or not key.startswith(left)}
        self._environment = {**kept, **values}


@contextlib.contextmanager
def _as(cloud: Cloud, values: t.Mapping[str, str], login: str = "openrc", without: str = "") -> t.Iterator[Shell]:
    yield _Login(cloud, login, values, without)
