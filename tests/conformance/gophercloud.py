# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gophercloud's acceptance tests, as Debian ships them: one binary for each Go package, one process for each test."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import http.server
import json
import os
import pathlib
import re
import secrets
import subprocess
import threading
import time
import typing as t

import yaml

from tests.clients.cloud import ROOT, Cloud

from . import configuration, tally

HERE = pathlib.Path(__file__).resolve().parent
BINARIES = ROOT / ".cache/gophercloud"
GOPATH = pathlib.Path("/usr/share/gocode")
SOURCES = GOPATH / "src/github.com/gophercloud/gophercloud/acceptance/openstack"
SERVICES = (
    "",
    "identity/v3",
    "compute/v2",
    "imageservice/v2",
    "blockstorage/v3",
    "blockstorage/extensions",
    "networking/v2",
)
# Services with an API of their own, which their tests reach by Neutron's address
OTHERS = re.compile(r"/(fwaas|fwaas_v2|lbaas|lbaas_v2|vpnaas)$")
CINDER = ("openstack.NewBlockStorageV2(", "openstack.NewBlockStorageV3(")
TIMEOUT = 1800  # seconds for a test: some start several guests under emulation
PROJECT = "admin"  # the tests look for one of this name
MEMBER = "gophercloud"
NOT_ADMIN = "must be a non-admin to run this test"
SKIP = re.compile(r"^\s*--- SKIP: ", re.MULTILINE)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
HEADERS = re.compile(r"^\d{4}/.* OpenStack \w+ Headers:\n(?:(?!\d{4}/|\s+\w+\.go:).*\n)*", re.MULTILINE)
OUTPUT = 20_000  # characters that are kept of what a failed test wrote


@dataclasses.dataclass(frozen=True)
class Test:
    package: str  # below SOURCES
    name: str  # of the Go function

    @property
    def full_name(self) -> str:
        return ".".join(filter(None, ["gophercloud", self.package.replace("/", "."), self.name]))

    @property
    def binary(self) -> pathlib.Path:
        return binary_of(self.package)


def binary_of(package: str) -> pathlib.Path:
    return BINARIES / (package.replace("/", "-") or "openstack")


def run(running: Cloud, workspace: pathlib.Path, chosen: str) -> list[tally.Outcome]:
    """Run the tests whose names match `chosen`; their outcomes, judged by gophercloud.yml."""
    tests = [test for test in _tests() if re.search(chosen, test.full_name)]
    if not tests:
        return []
    password = secrets.token_urlsafe(24)
    member = {"user": MEMBER, "password": password, "project": MEMBER, "role": "member"}
    configuration.record(running, workspace, [member])
    outcomes = []
    with _download(ROOT / ".cache/images/disk-tiny.qcow2") as proxy:
        settings = _settings(running) | {"HTTP_PROXY": proxy}
        operator = settings | {"OS_PROJECT_NAME": PROJECT, "OS_TENANT_NAME": PROJECT}
        for key in ("OS_USERNAME", "OS_PASSWORD"):
            operator[key] = running.environment("openrc-admin")[key]
        tenant = settings | {"OS_USERNAME": MEMBER, "OS_PASSWORD": password}
        tenant |= {"OS_PROJECT_NAME": MEMBER, "OS_TENANT_NAME": MEMBER}
        for test in tests:
            outcome = _outcome(test, operator)
            if NOT_ADMIN in outcome.text:
                outcome = _outcome(test, tenant)
            print(f"{outcome.word:8} {outcome.seconds:7.1f} s  {outcome.test}", flush=True)
            outcomes.append(outcome)
    expectations = yaml.safe_load((HERE / "gophercloud.yml").read_text())
    judged, passed = tally.judge(outcomes, expectations)
    for name in passed:
        print(f"gophercloud.yml: {name} passed, and need not be listed")
    if not chosen:
        names = {outcome.test for outcome in outcomes}
        for name in (name for each in expectations for name in each["tests"] if name not in names):
            print(f"gophercloud.yml: there is no test {name}")
    return judged


def _tests() -> list[Test]:
    """The tests of all packages of the services. Builds the binaries that are missing or of another version."""
    packages = []
    for service in SERVICES:
        folders = [SOURCES] if not service else [SOURCES / service, *sorted((SOURCES / service).rglob("*/"))]
        packages += [
            "" if folder == SOURCES else str(folder.relative_to(SOURCES))
            for folder in folders
            if not OTHERS.search(str(folder)) and any(folder.glob("*_test.go"))
        ]
    BINARIES.mkdir(parents=True, exist_ok=True)
    with (BINARIES / "lock").open("w") as lock:  # several checkouts may share the cache
        fcntl.flock(lock, fcntl.LOCK_EX)
        _build(packages)
    tests = []
    for package in packages:
        names = subprocess.run(
            [binary_of(package), "-test.list", "."], stdout=subprocess.PIPE, text=True, check=True
        ).stdout.split()
        tests += [Test(package, name) for name in names if name.startswith("Test")]
    return tests


def _build(packages: t.Iterable[str]) -> None:
    version = subprocess.run(
        ["dpkg-query", "-W", "golang-go", "golang-github-gophercloud-gophercloud-dev"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout + " ".join(CINDER)
    stamp = BINARIES / "version"
    current = stamp.exists() and stamp.read_text() == version
    environment = {
        **os.environ,
        "GO111MODULE": "off",
        "GOFLAGS": f"-overlay={_overlay()}",
        "GOPATH": str(GOPATH),
        "GOCACHE": str(BINARIES / "go-build"),
    }
    for package in packages:
        if current and binary_of(package).exists():
            continue
        print(f"building gophercloud's tests of {package or 'openstack'}", flush=True)
        subprocess.run(
            ["go", "test", "-c", "-tags", "acceptance", "-o", binary_of(package), f"./{package}"],
            cwd=SOURCES,
            env=environment,
            check=True,
        )
    stamp.write_text(version)


def _overlay() -> pathlib.Path:
    """A file by which Go reads the tests' clients changed: they ask Cinder's v3 what they know of v2, which is gone."""
    original, copy, overlay = SOURCES.parent / "clients/clients.go", BINARIES / "clients.go", BINARIES / "overlay.json"
    copy.write_text(original.read_text().replace(*CINDER))
    overlay.write_text(json.dumps({"Replace": {str(original): str(copy)}}))
    return overlay


def _settings(running: Cloud) -> dict[str, str]:
    """What the tests read from their environment, without the account."""
    admin = running.connect("openrc-admin")
    login = running.environment("openrc-admin")
    project = admin.identity.find_project(PROJECT) or admin.identity.create_project(name=PROJECT)
    admin.identity.assign_project_role_to_user(
        project, admin.identity.find_user(login["OS_USERNAME"]), admin.identity.find_role("admin")
    )
    flavors = {each.name: each.id for each in admin.compute.flavors()}
    images = {each.name: each.id for each in admin.image.images()}
    networks = {each.name: each.id for each in admin.network.networks()}
    subnet = next(admin.network.subnets(network_id=networks[configuration.NETWORK], ip_version=4))
    return {
        "PATH": os.environ["PATH"],
        "OS_AUTH_URL": login["OS_AUTH_URL"],
        "OS_IDENTITY_API_VERSION": "3",
        "OS_DOMAIN_NAME": "Default",
        "OS_REGION_NAME": login["OS_REGION_NAME"],
        "OS_BRANCH": "master",  # the release of OpenStack, by which tests leave out what is no more
        "OS_LIVE_MIGRATE": "1",
        "OS_IMAGE_ID": images[configuration.IMAGE],
        "OS_FLAVOR_ID": flavors[configuration.FLAVOR],
        "OS_FLAVOR_ID_RESIZE": flavors[configuration.FLAVOR_ALT],
        "OS_NETWORK_NAME": configuration.NETWORK,
        "OS_NETWORK_ID": networks[configuration.NETWORK],
        "OS_SUBNET_ID": subnet.id,
        "OS_POOL_NAME": configuration.FLOATING,
        "OS_EXTGW_ID": networks[configuration.FLOATING],
    }


def _outcome(test: Test, environment: dict[str, str]) -> tally.Outcome:
    """Run a test, with its requests and answers in the output that is kept of a failure."""
    began = time.monotonic()
    try:
        done = subprocess.run(
            [test.binary, "-test.v", "-test.run", f"^{test.name}$", "-test.timeout", f"{TIMEOUT}s"],
            env=environment | {"OS_DEBUG": "1"},
            cwd=SOURCES / test.package,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=TIMEOUT + 60,
            check=False,
        )
        status, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as error:
        status, output = 1, (error.output or b"").decode(errors="replace")
    word = tally.FAILED if status else tally.SKIPPED if SKIP.search(output) else tally.PASSED
    text = HEADERS.sub("", COLOUR.sub("", output))[-OUTPUT:]
    if word == tally.SKIPPED:
        text = _reason(text)
    return tally.Outcome(test.full_name, word, time.monotonic() - began, text)


def _reason(output: str) -> str:
    """The reason that a test gives for its being skipped: its last words."""
    lines = [line.split(": ", 1)[-1].strip() for line in output.splitlines() if re.match(r"\s+\w+\.go:\d+: ", line)]
    return lines[-1] if lines else "skipped by itself"


@contextlib.contextmanager
def _download(image: pathlib.Path) -> t.Iterator[str]:
    """A proxy that has `image` for each address: tests load one from the internet, which is not there."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(image.stat().st_size))
            self.end_headers()
            self.wfile.write(image.read_bytes())

        def log_message(self, *_: t.Any) -> None:
            """Keep quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
