# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""`python -m novalite_api serve | serve-metadata | work | ec2-credential`, set by NOVALITE_* (docs/settings.md)."""

from __future__ import annotations

import argparse
import json
import sys
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.sqlite_engine import check_whole
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import by_playbook
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import ec2_credentials
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import user_records

from .settings import Settings
from .web.ledger import Ledger


def main(argv: t.Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["work"]:
        from .jobs.__main__ import main as work

        return work(arguments[1:])
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(Settings.from_environment(), options))
    except NovaliteError as error:
        print(f"novalite: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m novalite_api", description="novalite's application.")
    commands = parser.add_subparsers(required=True, metavar="command")
    serve = commands.add_parser("serve", help="serve the REST API")
    serve.add_argument("--bind", help="address:port to listen on (default: $NOVALITE_API_BIND, 127.0.0.1:8774)")
    serve.add_argument("--no-worker", action="store_true", help="leave the jobs to workers that run elsewhere")
    serve.set_defaults(run=_serve)
    metadata = commands.add_parser("serve-metadata", help="serve what guests are told about them")
    metadata.add_argument("--bind", help="address:port to listen on (default: $NOVALITE_METADATA_BIND, 127.0.0.1:8775)")
    metadata.set_defaults(run=_serve_metadata)
    commands.add_parser("work", help="carry out jobs", add_help=False)
    ec2 = commands.add_parser("ec2-credential", help="print a user's EC2 credential as JSON; make one if there is none")
    ec2.add_argument("--user", required=True)
    ec2.add_argument("--project", required=True)
    ec2.set_defaults(run=_ec2_credential)
    return parser


def _look_at_ledger(settings: Settings) -> None:
    """Raise NovaliteError for a ledger that cannot be opened, or is damaged."""
    engine = open_ledger(settings.home, settings.ledger_url)
    try:
        check_whole(engine)
    finally:
        engine.dispose()


def _serve(settings: Settings, options: argparse.Namespace) -> int:
    from . import API
    from .server import serve_api

    # here, where a person reads what is wrong, and not in every worker
    _look_at_ledger(settings)
    settings.check()
    serve_api(settings, options.bind or settings.api_bind, API, jobs=not options.no_worker)
    return 0


def _serve_metadata(settings: Settings, options: argparse.Namespace) -> int:
    from . import create_app
    from .server import Server

    create_app(settings, ["metadata"])
    _look_at_ledger(settings)
    bind = options.bind or settings.metadata_bind
    Server(settings, bind, ["metadata"], workers=settings.workers, threads=settings.threads).run()
    return 0


def _ec2_credential(settings: Settings, options: argparse.Namespace) -> int:
    ledger = Ledger(settings)
    seal = ledger.seal
    with transaction(ledger.engine) as connection:
        user = user_records.user_by_name(connection, options.user)
        if user is None:
            raise lookups.unknown(
                "user", options.user, [record["name"] for record in user_records.list_users(connection)]
            )
        project = lookups.project_by_name(connection, options.project)
        try:
            credential = ec2_credentials.ensure(by_playbook(connection), seal, user["id"], project["id"])
        except NotFoundError:
            text = f"user {options.user!r} has no role in project {options.project!r}: give it one first"
            raise NotFoundError(text) from None
    print(json.dumps({"access": credential["access"], "secret": credential["secret"]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
