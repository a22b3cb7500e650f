# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Key pairs. They are the project's, as for the other dialects. Their fingerprints are those that Amazon computes."""

from __future__ import annotations

import base64
import hashlib
import typing as t

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import keypairs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.keypair_records import (
    KeyPair,
    keypairs_of,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.ec2 import ec2_attributes
from ansible_collections.novalite.cloud.plugins.module_utils._model.plain_text import is_plain

from ...web.bodies import the_one
from ...web.context import Caller, current
from ...web.errors import in_words
from ...web.ledger import writing_ledger
from ...work.calls import calling
from ...work.keys import new_rsa_key
from .. import filters, ids
from ..blueprint import action, reads, refuse_dry_run, writes
from ..common import Body, Parameters, forget_tags, keep_tags, moment, tag_set, tags_for
from ..faults import Ec2Error, as_codes, invalid, missing
from ..parameters import FILTERS, TAG_SPECIFICATIONS, TEXTS, Base64, Boolean, Text

KIND = "key-pair"
REFUSED: t.Mapping[type[Exception], str] = {QuotaError: "KeyPairLimitExceeded"}
KINDS = ("rsa", "ed25519")
_NO_PASSWORD = serialization.NoEncryption()
KEY_FILTERS = filters.like("key-name key-pair-id fingerprint=keyFingerprint")


@reads(
    "DescribeKeyPairs",
    "compute:keypairs:read",
    {"KeyName": TEXTS, "KeyPairId": TEXTS, "IncludePublicKey": Boolean(), "Filter": FILTERS},
)
def describe_key_pairs(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    bodies = _bodies(connection, caller, parameters.get("IncludePublicKey", False))
    if "KeyName" in parameters or "KeyPairId" in parameters:
        requested_bodies = [_named(bodies, name) for name in parameters.get("KeyName", [])]
        requested_bodies += ids.find_all(
            "key", parameters.get("KeyPairId", []), {body["keyPairId"]: body for body in bodies}
        )
        bodies = [body for body in bodies if body in requested_bodies]
    return {"keySet": filters.filtered(bodies, parameters, KEY_FILTERS)}


def _bodies(connection: Connection, caller: Caller, with_key: bool) -> list[Body]:
    made = ec2_attributes.made_fingerprints(connection, caller.project, caller.user_id)
    tags = ec2_attributes.tags_of(connection, caller.project)
    return [
        {
            "keyPairId": (number := ids.of_key(row)),
            "keyName": row["name"],
            "keyFingerprint": made.get((row["user_id"], row["name"])) or fingerprint(row["public_key"]),
            "keyType": kind_of(row["public_key"]),
            "publicKey": row["public_key"] if with_key else None,
            "createTime": moment(row["created_at"]),
            "tagSet": tag_set(tags.get(number, {})),
        }
        for row in keypairs_of(connection, caller.project, caller.user_id)
    ]


def _named(bodies: list[Body], name: str) -> Body:
    return the_one(
        bodies, "keyName", name, Ec2Error("InvalidKeyPair.NotFound", f"The key pair '{name}' does not exist")
    )


@action(
    "CreateKeyPair",
    "compute:keypairs:write",
    {
        "KeyName": Text(),
        "KeyType": Text(choices=KINDS),
        "KeyFormat": Text(choices=("pem", "ppk")),
        "TagSpecification": TAG_SPECIFICATIONS,
    },
    ["KeyName"],
)
def create_key_pair(parameters: Parameters) -> Body:
    if parameters.get("KeyFormat", "pem") != "pem":
        raise invalid("KeyFormat", parameters["KeyFormat"], "keys are made in PEM: puttygen reads that")
    refuse_dry_run()
    # before the transaction: that takes a while
    made = make(parameters.get("KeyType", "rsa"), "generated-by-novalite")
    with writing_ledger() as connection:
        _row, body = _add(connection, current(), parameters, made.public, made.fingerprint)
    return {**body, "keyFingerprint": made.fingerprint, "keyMaterial": made.private}


@writes(
    "ImportKeyPair",
    "compute:keypairs:write",
    {"KeyName": Text(), "PublicKeyMaterial": Base64(16384), "TagSpecification": TAG_SPECIFICATIONS},
    ["KeyName", "PublicKeyMaterial"],
)
def import_key_pair(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    with as_codes({}, "InvalidKey.Format"):
        public = public_line(parameters["PublicKeyMaterial"], "imported")
    row, body = _add(connection, caller, parameters, public)
    return {**body, "keyFingerprint": fingerprint(row["public_key"])}


def _add(
    connection: Connection, caller: Caller, parameters: Parameters, public: str, private: str | None = None
) -> tuple[KeyPair, Body]:
    """Record a key pair; `private` is the fingerprint of its private part, if it was made here."""
    name, tags = parameters["KeyName"], tags_for(parameters, KIND)[KIND]
    duplicate = Ec2Error("InvalidKeyPair.Duplicate", f"The keypair '{name}' already exists.")
    with as_codes({}):
        keypairs.check_name(name)
    with as_codes(REFUSED, "InvalidKey.Format"), in_words({ConflictError: lambda _message: duplicate}):
        row = keypairs.create(calling(connection), caller.user_id, name, public, fingerprint=private)
    number = ids.of_key(row)
    keep_tags(connection, number, tags)
    return row, {"keyPairId": number, "keyName": name, "tagSet": tag_set(tags)}


@writes("DeleteKeyPair", "compute:keypairs:write", {"KeyName": Text(), "KeyPairId": Text()})
def delete_key_pair(connection: Connection, caller: Caller, parameters: Parameters) -> None:
    """Delete a key pair. As with Amazon, a missing key pair is not an error; instances keep the copy that they have."""
    if not parameters.get("KeyName") and not parameters.get("KeyPairId"):
        raise missing("KeyName")
    by_name = {row["name"]: ids.of_key(row) for row in keypairs_of(connection, caller.project, caller.user_id)}
    by_id = {number: name for name, number in by_name.items()}
    name = parameters.get("KeyName") or by_id.get(parameters.get("KeyPairId", ""))
    if name in by_name:
        keypairs.delete(calling(connection), caller.user_id, name)
        forget_tags(connection, by_name[name])


# --- keys, in the forms that clients send ---------------------------------------------------------------------------


class Made(t.NamedTuple):
    private: str  # PEM: told once, and kept nowhere
    public: str  # OpenSSH's line
    fingerprint: str


def make(kind: str, name: str) -> Made:
    """A new key. The fingerprint of an RSA key is of its private part (SHA-1 of PKCS #8), as Amazon's."""
    if kind == "ed25519":
        own = ed25519.Ed25519PrivateKey.generate()
        private = own.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, _NO_PASSWORD)
        line = _line(own.public_key(), name)
        return Made(private.decode(), line, fingerprint(line))
    key, pem, line = new_rsa_key(name)
    pkcs8 = key.private_bytes(serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, _NO_PASSWORD)
    return Made(pem, line, _with_colons(hashlib.sha1(pkcs8, usedforsecurity=False).hexdigest()))


def public_line(material: bytes, name: str) -> str:
    """OpenSSH's line of a public key in that form, or in PEM or DER (X.509). Raises NovaliteError for anything else."""
    try:
        text = material.decode()
    except UnicodeDecodeError:
        text = ""
    try:
        if text.lstrip().startswith("-----BEGIN PUBLIC KEY-----"):
            return _line(serialization.load_pem_public_key(text.strip().encode()), name)
        if not is_plain(text.strip(), allowed="\t") or not text:
            return _line(serialization.load_der_public_key(material), name)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise NovaliteError("Key is not in valid OpenSSH public key format") from None
    return text.strip()


def fingerprint(line: str) -> str:
    """Amazon's of a public key that came in: of RSA the MD5 of its X.509 form, of others OpenSSH's SHA-256."""
    kind, encoded = line.split(" ", 2)[:2]
    blob = base64.b64decode(encoded)
    if kind == "ssh-rsa":
        try:
            key = serialization.load_ssh_public_key(f"{kind} {encoded}".encode())
        except (ValueError, UnsupportedAlgorithm):
            return _with_colons(hashlib.md5(blob, usedforsecurity=False).hexdigest())
        der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        return _with_colons(hashlib.md5(der, usedforsecurity=False).hexdigest())
    return base64.b64encode(hashlib.sha256(blob).digest()).decode()


def kind_of(line: str) -> str:
    """The element keyType. Types that Amazon does not know are named as OpenSSH does."""
    kind = line.partition(" ")[0]
    return {"ssh-rsa": "rsa", "ssh-ed25519": "ed25519"}.get(kind, kind)


def _line(key: PublicKeyTypes, name: str) -> str:
    public = key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return f"{public.decode()} {name}"


def _with_colons(digest: str) -> str:
    return ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))
