# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Download of one file over HTTP or HTTPS that survives interruptions: what came is kept, and the rest is asked for.

Nothing here trusts the server: sizes and times are bounded, redirects lead to http and https only, and whether what
came is the right thing is decided by the caller, by its checksum.
"""

from __future__ import annotations

import email.message
import http.client
import json
import os
import re
import shutil
import ssl
import time
import typing as t
import urllib.error
import urllib.parse
import urllib.request

from .._errors import ImageRefusedError, NovaliteError
from .._host import events
from .._host.files import remove_file, write_atomically
from .download_request import Report, Source, Transfer, remove_part

CHUNK = 1 << 20
STALL_TIMEOUT = 30.0  # seconds without a byte
ATTEMPTS = 5  # in a row without a byte
PAUSE = 1.0  # seconds before the second attempt, twice as long before each one after it
REPORT_EVERY = 10.0  # seconds
MAX_REDIRECTS = 5
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})  # HTTP statuses that may be others a little later
NUMBER = re.compile("[0-9]{1,18}")
CONTENT_RANGE = re.compile("bytes (?:([0-9]{1,18})-[0-9]{1,18}|[*])/([0-9]{1,18}|[*])")


def download(source: Source, part: str, report: Report) -> Transfer:
    """Bring `source` into the file `part`, from where an earlier call stopped.

    What is there after a failure of the network is left for the next call. Raises ImageRefusedError for what is larger
    than the limit, NovaliteError; OSError for the disk's own failures.
    """
    started = time.monotonic()
    state = _State(part, source.url)
    resumed_from = state.size
    failures = 0
    while True:
        before = state.size
        try:
            _attempt(source, state, started, report)
            break
        except _PassingError as error:
            failures = 1 if state.size > before else failures + 1
            if failures >= ATTEMPTS:
                raise NovaliteError(
                    f"{source.name} cannot be downloaded: {error} ({state.size} bytes are kept, the "
                    "next run goes on from there)"
                ) from error
            report(f"{source.name}: {error}, trying again from byte {state.size}")
            time.sleep(PAUSE * 2 ** (failures - 1))
    resumed_from = min(resumed_from, state.kept_from)
    seconds = time.monotonic() - started
    remove_file(f"{part}.json")
    report(f"{source.name}: {state.size} bytes in {seconds:.1f} s")
    return Transfer(state.size, resumed_from, seconds)


class _PassingError(Exception):
    """A failure that another attempt may not meet."""


class _State:
    """State of the part file, with the server's validator for that version of the file (If-Range)."""

    def __init__(self, part: str, url: str) -> None:
        self.part = part
        self.url = url
        self.validator = self._read()
        self.size = os.stat(part).st_size if self.validator is not None else 0
        self.kept_from = self.size  # where the bytes of earlier calls end

    def _read(self) -> str | None:
        """The validator, "" when the server gave none; None when there is nothing to go on with."""
        try:
            with open(f"{self.part}.json", encoding="utf-8") as handle:
                note = json.load(handle)
            if note["url"] == self.url and os.path.exists(self.part):
                return str(note["validator"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None

    def begin(self, validator: str) -> None:
        """Start from byte 0, with another version of the file."""
        self.size = self.kept_from = 0
        self.validator = validator
        remove_part(self.part)
        write_atomically(f"{self.part}.json", json.dumps({"url": self.url, "validator": validator}), 0o600)


class _Redirects(urllib.request.HTTPRedirectHandler):
    max_redirections = MAX_REDIRECTS

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: t.IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        # urllib itself would follow to ftp as well
        if urllib.parse.urlsplit(newurl).scheme not in ("http", "https"):
            raise urllib.error.HTTPError(req.full_url, code, "redirect to neither http nor https", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    """Build an opener that knows http and https, with the proxies of the environment, but neither file: nor ftp:."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.UnknownHandler,
        _Redirects,
    ):
        opener.add_handler(handler())
    return opener


def _attempt(source: Source, state: _State, started: float, report: Report) -> None:
    response = _open(source, state)
    if response is None:
        return
    with response:
        total = _place(source, state, response)
        _check_room(source, state, total)
        _receive(source, state, response, total, started, report)


def _open(source: Source, state: _State) -> http.client.HTTPResponse | None:
    """The server's answer, None when there is nothing left to come."""
    headers = {"Accept-Encoding": "identity", "User-Agent": "novalite"}
    if state.size:
        headers["Range"] = f"bytes={state.size}-"
        if state.validator:
            headers["If-Range"] = state.validator
    try:
        request = urllib.request.Request(source.url, headers=headers)
        return t.cast(http.client.HTTPResponse, _opener().open(request, timeout=STALL_TIMEOUT))
    except urllib.error.HTTPError as error:
        with error:  # it is the answer as well
            if error.code == 416 and state.size:
                _past_the_end(state, error.headers)
                return None
        if error.code in PASSING:
            raise _PassingError(str(error)) from error
        raise NovaliteError(f"{source.name} cannot be downloaded: {error}") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        if isinstance(reason, (ssl.SSLCertVerificationError, str)):  # a text: urllib itself refuses the URL
            raise NovaliteError(f"{source.name} cannot be downloaded: {reason}") from error
        raise _PassingError(str(reason) or type(error).__name__) from error
    except ValueError as error:  # a URL, or a host name, that is none
        raise NovaliteError(f"{source.name} cannot be downloaded: {error}") from error


def _place(source: Source, state: _State, response: http.client.HTTPResponse) -> int | None:
    """Get ready to append what comes; returns the size of the whole file if the server says so."""
    length = response.headers.get("Content-Length", "")
    left = int(length) if NUMBER.fullmatch(length) else None
    if response.status == 206:
        match = CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if match is None or match.group(1) != str(state.size):
            state.begin("")
            raise _PassingError("the server sent another part of the file than it was asked for")
        return int(match.group(2)) if match.group(2) != "*" else None
    if response.status != 200:
        raise NovaliteError(f"{source.name} cannot be downloaded: HTTP status {response.status}")
    state.begin(_validator(response.headers))
    return left


def _validator(headers: email.message.Message) -> str:
    etag = headers.get("ETag", "")
    # If-Range takes no weak ones
    return etag if etag and not etag.startswith("W/") else headers.get("Last-Modified", "")


def _past_the_end(state: _State, headers: email.message.Message) -> None:
    """416: either everything has come, or the file became shorter."""
    match = CONTENT_RANGE.fullmatch(headers.get("Content-Range", ""))
    if match is None or match.group(2) != str(state.size):
        state.begin("")
        raise _PassingError("the file on the server became shorter")


def _check_room(source: Source, state: _State, total: int | None) -> None:
    if total is None:
        return
    if total > source.limit:
        remove_part(state.part)
        raise ImageRefusedError(
            f"{source.name} has {total} bytes; it is larger than the {source.limit} bytes that "
            "were declared, or are accepted"
        )
    free = shutil.disk_usage(os.path.dirname(state.part)).free
    if total - state.size > free:
        raise NovaliteError(
            f"{source.name} does not fit: {total - state.size} bytes are to come, {free} are free in "
            f"{os.path.dirname(state.part)}"
        )


def _read(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read1(CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise _PassingError(str(error) or type(error).__name__) from error


def _receive(
    source: Source, state: _State, response: http.client.HTTPResponse, total: int | None, started: float, report: Report
) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    reported = time.monotonic()
    with (
        open(os.open(state.part, flags, 0o600), "ab", buffering=0) as target,
        events.moving(lambda: (state.size, total or 0)),
    ):
        while chunk := _read(response):
            if state.size + len(chunk) > source.limit:
                remove_part(state.part)
                raise ImageRefusedError(
                    f"{source.name} is larger than the {source.limit} bytes that were declared, or are accepted"
                )
            target.write(chunk)
            state.size += len(chunk)
            now = time.monotonic()
            if now - started > source.timeout:
                # a server that sends a byte now and then
                raise NovaliteError(
                    f"{source.name} did not come within {source.timeout:g} s ({state.size} bytes are "
                    "kept, the next run goes on from there)"
                )
            if now - reported > REPORT_EVERY:
                reported = now
                report(f"{source.name}: {state.size} of {total or 'an unknown number of'} bytes")
    # http.client says nothing about a body that ends too early when it is read in pieces
    if total is not None and state.size < total:
        raise _PassingError(f"the connection ended after {state.size} of {total} bytes")
