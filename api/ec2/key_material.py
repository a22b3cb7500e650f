# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keys: made, read in the forms that clients send, and named by the fingerprints that Amazon computes."""

from __future__ import annotations

import base64
import hashlib
import typing as t

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError

KINDS = ("rsa", "ed25519")
RSA_BITS = 2048
_NO_PASSWORD = serialization.NoEncryption()


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
    key = rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, _NO_PASSWORD
    )
    pkcs8 = key.private_bytes(serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, _NO_PASSWORD)
    digest = hashlib.sha1(pkcs8, usedforsecurity=False).hexdigest()
    return Made(private.decode(), _line(key.public_key(), name), _with_colons(digest))


def public_line(material: bytes, name: str) -> str:
    """OpenSSH's line of a public key in that form, or in PEM or DER (X.509). Raises NovaliteError for anything else."""
    try:
        text = material.decode()
    except UnicodeDecodeError:
        text = ""
    try:
        if text.lstrip().startswith("-----BEGIN PUBLIC KEY-----"):
            return _line(serialization.load_pem_public_key(text.strip().encode()), name)
        if not text.strip().isprintable() or not text:
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
