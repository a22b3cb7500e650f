# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Signatures of requests, version 4 and version 2, as Amazon's clients make them. Plain data in, plain data out.

What is signed is the request as it came: method, host, path, every parameter, and for version 4 the body and the
headers that the signature names. A parameter that is not in what was signed is a parameter that changes the signature.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import hashlib
import hmac
import re
import typing as t
import urllib.parse

ALGORITHM = "AWS4-HMAC-SHA256"
SERVICE = "ec2"
LONGEST = 7 * 24 * 3600  # seconds: the most that a query may be signed for
METHODS_V2 = {"HmacSHA256": hashlib.sha256, "HmacSHA1": hashlib.sha1}

_CREDENTIAL = re.compile(
    r"([\x21-\x2e\x30-\x7e]{1,128})/([0-9]{8})/([A-Za-z0-9-]{1,64})/([A-Za-z0-9-]{1,63})/aws4_request"
)
_BASIC = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_EXTENDED = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.[0-9]{1,6})?(?:Z|[+]00:00)?")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]{1,128}")
_MOST_HEADERS = 100

Pairs = t.Sequence[tuple[str, str]]


class Unsigned(Exception):
    """Request without a signature, or with one that cannot be right."""


@dataclasses.dataclass(frozen=True)
class Request:
    """A request as it came in. `headers` by names in lower case; `query` and `form` are decoded."""

    method: str
    host: str  # as the header says
    path: str  # decoded
    query: Pairs
    form: Pairs
    body: bytes
    headers: t.Mapping[str, str]

    @property
    def parameters(self) -> dict[str, str]:
        """Parameters of query and body together. Raises Unsigned for a repeated one: it is unclear which counts."""
        values: dict[str, str] = {}
        for name, value in [*self.query, *self.form]:
            if name in values:
                raise Unsigned(f"The parameter {name[:60]} was given twice")
            values[name] = value
        return values


@dataclasses.dataclass(frozen=True)
class Claim:
    """Whose signature it is said to be, and for when; is_right() says whether that is so."""

    access: str
    signed_at: float  # seconds since the epoch; of a Timestamp, or the beginning of `expires_at`
    expires_at: float | None  # what the request itself says
    signature: str
    candidates: t.Callable[[str], list[str]]  # from a secret: the signatures that are right


def claim_of(request: Request) -> Claim:
    """Return the signature that a request claims, by its Authorization header or its parameters. Raises Unsigned."""
    authorization = request.headers.get("authorization", "")
    if authorization:
        return _by_header(request, authorization)
    parameters = request.parameters
    if "X-Amz-Algorithm" in parameters:
        return _by_query(request)
    if "SignatureVersion" in parameters:
        return _version_2(request, parameters)
    raise Unsigned("The request is not signed")


def is_right(claim: Claim, secret: str) -> bool:
    """Tell whether the claim's signature was made with `secret`, in a time that hides how much of it is right."""
    signature = claim.signature.encode("utf-8", "surrogatepass")
    right = False
    for candidate in claim.candidates(secret):
        right |= hmac.compare_digest(candidate.encode(), signature)
    return right


# --- version 4 ------------------------------------------------------------------------------------------------------


def _by_header(request: Request, authorization: str) -> Claim:
    algorithm, _blank, rest = authorization.partition(" ")
    if algorithm != ALGORITHM:
        raise Unsigned(f"Only {ALGORITHM} is known in the header Authorization")
    fields: dict[str, str] = {}
    for part in rest.split(","):
        name, equals, value = part.strip().partition("=")
        if not equals or name in fields:
            raise Unsigned("The header Authorization is malformed")
        fields[name] = value
    if set(fields) != {"Credential", "SignedHeaders", "Signature"}:
        raise Unsigned("The header Authorization needs Credential, SignedHeaders and Signature")
    when = request.headers.get("x-amz-date", "")
    signed = _signed_headers(request, fields["SignedHeaders"])
    if "x-amz-date" not in signed:
        raise Unsigned("The header X-Amz-Date must be there, and signed")
    return _version_4(request, fields["Credential"], signed, when, fields["Signature"], request.query, None)


def _by_query(request: Request) -> Claim:
    parameters = request.parameters
    if parameters["X-Amz-Algorithm"] != ALGORITHM:
        raise Unsigned(f"Only {ALGORITHM} is known as X-Amz-Algorithm")
    try:
        credential, names, when, signature, expires = (
            parameters[f"X-Amz-{name}"] for name in ("Credential", "SignedHeaders", "Date", "Signature", "Expires")
        )
    except KeyError as error:
        raise Unsigned(f"The parameter {error.args[0]} is missing") from None
    if re.fullmatch("[0-9]{1,6}", expires, re.ASCII) is None or not 1 <= int(expires) <= LONGEST:
        raise Unsigned(f"X-Amz-Expires must be a number of seconds, {LONGEST} at most")
    query = [(name, value) for name, value in request.query if name != "X-Amz-Signature"]
    return _version_4(request, credential, _signed_headers(request, names), when, signature, query, int(expires))


def _version_4(
    request: Request, credential: str, signed: list[str], when: str, signature: str, query: Pairs, lasts: int | None
) -> Claim:
    scope = _CREDENTIAL.fullmatch(credential)
    if scope is None:
        raise Unsigned("The credential is malformed: write key/date/region/ec2/aws4_request")
    access, day, region, service = scope.groups()
    signed_at = _basic_time(when)
    # boto 2 takes the beginning of any host's name for the service's: of 127.0.0.1 it is "127"
    if service not in (SERVICE, re.split("[.:]", request.host)[0]):
        raise Unsigned(f"Credential should be scoped to correct service: '{SERVICE}', and it is scoped to '{service}'")
    if day != when[:8]:
        raise Unsigned(f"The credential is for {day}: it has to be for the day of X-Amz-Date, {when[:8]}")
    canonical = "\n".join(
        [
            request.method,
            # once as it travels, and once more: what every service but S3 is signed with
            urllib.parse.quote(urllib.parse.quote(request.path, safe="/-_.~"), safe="/-_.~"),
            "&".join(f"{name}={value}" for name, value in sorted((_quoted(n), _quoted(v)) for n, v in query)),
            *(f"{name}:{_header(request, name)}" for name in signed),
            "",
            ";".join(signed),
            hashlib.sha256(request.body).hexdigest(),
        ]
    )
    text = "\n".join(
        [
            ALGORITHM,
            when,
            f"{day}/{region}/{service}/aws4_request",
            hashlib.sha256(canonical.encode("utf-8", "surrogateescape")).hexdigest(),
        ]
    )

    def candidates(secret: str) -> list[str]:
        key = f"AWS4{secret}".encode()
        for part in (day, region, service, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        return [hmac.digest(key, text.encode(), "sha256").hex()]

    return Claim(access, signed_at, None if lasts is None else signed_at + lasts, signature, candidates)


def _signed_headers(request: Request, text: str) -> list[str]:
    """Their names in order. The host is among them, and every header of Amazon's own that came."""
    names = text.split(";")
    if len(names) > _MOST_HEADERS or any(_HEADER_NAME.fullmatch(name) is None for name in names):
        raise Unsigned("The names of the signed headers are malformed")
    if names != sorted(set(names)):
        raise Unsigned("The names of the signed headers must be in order, each once")
    missing = [name for name in names if name not in request.headers and name != "host"]
    if missing:
        raise Unsigned(f"The signed header {missing[0]} is not there")
    for name in ("host", *(name for name in request.headers if name.startswith("x-amz-"))):
        if name not in names:
            raise Unsigned(f"The header {name} must be signed")
    return names


def _header(request: Request, name: str) -> str:
    value = request.host if name == "host" else request.headers[name]
    return " ".join(value.split())


def _basic_time(text: str) -> float:
    if _BASIC.fullmatch(text) is None:
        raise Unsigned("The date must have the form 20301231T235959Z")
    return _seconds(text, "%Y%m%dT%H%M%SZ")


# --- version 2 ------------------------------------------------------------------------------------------------------


def _version_2(request: Request, parameters: t.Mapping[str, str]) -> Claim:
    if parameters["SignatureVersion"] != "2":
        raise Unsigned("Only signature versions 4 and 2 are known")
    method = METHODS_V2.get(parameters.get("SignatureMethod", ""))
    if method is None:
        raise Unsigned(f"SignatureMethod must be one of {', '.join(METHODS_V2)}")
    access, signature = parameters.get("AWSAccessKeyId", ""), parameters.get("Signature", "")
    if not access or not signature:
        raise Unsigned("AWSAccessKeyId and Signature must be given")
    if ("Timestamp" in parameters) == ("Expires" in parameters):
        raise Unsigned("Give a Timestamp or Expires, one of them")
    expires_at = _extended_time(parameters["Expires"]) if "Expires" in parameters else None
    signed_at = _extended_time(parameters["Timestamp"]) if expires_at is None else expires_at
    canonical = "&".join(
        f"{_quoted(name)}={_quoted(parameters[name])}"
        for name in sorted(parameters, key=lambda name: name.encode("utf-8", "surrogatepass"))
        if name != "Signature"
    )
    host, path = request.host.lower(), urllib.parse.quote(request.path, safe="/-_.~")
    # old clients disagree about whether the port is part of the host
    hosts = dict.fromkeys([host, re.sub(r":[0-9]+$", "", host)])
    texts = [f"{request.method}\n{hypervisor}\n{path}\n{canonical}".encode() for hypervisor in hosts]

    def candidates(secret: str) -> list[str]:
        return [base64.b64encode(hmac.new(secret.encode(), text, method).digest()).decode() for text in texts]

    return Claim(access, signed_at, expires_at, signature, candidates)


def _extended_time(text: str) -> float:
    match = _EXTENDED.fullmatch(text)
    if match is None:
        raise Unsigned("A time must have the form 2030-12-31T23:59:59Z")
    return _seconds(match[1], "%Y-%m-%dT%H:%M:%S")


def _seconds(text: str, form: str) -> float:
    try:
        return datetime.datetime.strptime(text, form).replace(tzinfo=datetime.timezone.utc).timestamp()
    except ValueError:
        raise Unsigned(f"{text} is not a time") from None


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="-_.~", errors="surrogatepass")
