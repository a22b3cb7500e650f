# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._rules.server_requests import (
    GIB,
    MAX_SERVERS,
    QUOTA_RESOURCES,
    check_fits,
    check_label,
    check_quota,
    differences,
    expand,
    expand_names,
)

LABELS = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9-]{0,40}[A-Za-z0-9])?", fullmatch=True)


@given(LABELS)
def test_every_label_is_a_name_and_its_lower_case_the_hostname(name: str) -> None:
    (request,) = expand([{"name": name}])
    assert (request.name, request.hostname) == (name, name.lower())


@given(st.text())
def test_what_passes_is_what_rfc_1123_says(name: str) -> None:
    allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"
    good = 1 <= len(name) <= 63 and all(c in allowed for c in name) and name[0] != "-" and name[-1] != "-"
    if good:
        assert check_label(name, "server name") == name
    else:
        with pytest.raises(NovaliteError) as caught:
            check_label(name, "server name")
        assert "\n" not in str(caught.value) and str(caught.value).isascii()


@pytest.mark.parametrize(
    "name", ["-bad-", "a..b", "", "a" * 64, "two words", "under_score", "web\n", "ünder", "a.b", None, 7, ["web"]]
)
def test_a_name_that_is_no_hostname_is_refused_by_name(name: t.Any) -> None:
    with pytest.raises(NovaliteError, match="is not a host name"):
        expand([{"name": name}])


def test_a_name_that_its_number_makes_too_long_is_refused() -> None:
    assert len(expand([{"name": "a" * 61, "count": 9}])) == 9
    with pytest.raises(NovaliteError, match="a-10' is not a host name"):
        expand([{"name": "a" * 61, "count": 10}])


@given(LABELS, st.integers(2, 50))
def test_count_numbers_from_one_and_absent_names_the_same(name: str, count: int) -> None:
    entries = [{"name": name, "count": count}]
    names = [f"{name}-{number}" for number in range(1, count + 1)]
    assert [request.name for request in expand(entries)] == names == expand_names(entries)


@pytest.mark.parametrize("count", [0, -1, True, False, 1.0, "x", "-1", "", "0", [], "1e3", "٣"])
def test_a_count_that_is_none_is_refused(count: t.Any) -> None:
    for parse in (expand, expand_names):
        with pytest.raises(NovaliteError, match=r"of 'web': give 1 or more"):
            parse([{"name": "web", "count": count}])


def test_the_count_error_names_count_and_server() -> None:
    with pytest.raises(NovaliteError, match=r"^count 0 of 'web': give 1 or more$"):
        expand([{"name": "web", "count": 0}])


def test_a_count_as_text_is_a_count() -> None:
    assert len(expand([{"name": "web", "count": "3"}])) == 3


def test_the_number_of_servers_is_bounded() -> None:
    with pytest.raises(NovaliteError, match="at most 1000"):
        expand([{"name": "web", "count": 10**8}])
    for parse in (expand, expand_names):
        with pytest.raises(NovaliteError, match=f"{MAX_SERVERS + 1} servers in one call"):
            parse([{"name": "web", "count": MAX_SERVERS}, {"name": "db"}])


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([{"name": "web"}, {"name": "web"}], "server 'web' is asked for twice"),
        ([{"name": "web", "count": 2}, {"name": "web-2"}], "server 'web-2' is asked for twice"),
        ([{"name": "web"}, {"name": "WEB"}], "hostname 'web' is asked for twice"),
        ([{"name": "a", "hostname": "x"}, {"name": "b", "hostname": "X"}], "hostname 'x' is asked for twice"),
        ([{"name": "a", "networks": ["n", "n"]}], "network of 'a' 'n' is asked for twice"),
        (
            [{"name": name, "networks": [{"name": "n", "fixed_ip": "10.0.0.5"}]} for name in "ab"],
            "fixed address '10.0.0.5 on n' is asked for twice",
        ),
        ([{"name": "a", "networks": []}], "networks of 'a'"),
        ([{"name": "a", "networks": ["n"] * 11}], "networks of 'a'"),
        ([{"name": "a", "networks": [3]}], "network '3' of 'a'"),
        ([{"name": "a", "networks": [{"name": "n", "ip": "10.0.0.5"}]}], "no option 'ip'"),
        ([{"name": "a", "networks": [{"name": "n", "fixed_ip": "10.0.0"}]}], "fixed_ip '10.0.0' of 'a'"),
        ([{"name": "a", "networks": [{"name": "n", "fixed_ip": 7}]}], "fixed_ip '7' of 'a'"),
        (
            [{"name": "a", "count": 2, "networks": [{"name": "n", "fixed_ip": "10.0.0.5"}]}],
            "fixed_ip 10.0.0.5 of 'a' with count 2",
        ),
        ([{"name": "a", "hostname": "a_b"}], "hostname of 'a' 'a_b'"),
        ([{"name": "a", "security_groups": ["g"] * 11}], "security_groups of 'a'"),
        ([{"name": "a", "security_groups": [""]}], "security group '' of 'a'"),
        ([{"name": "a", "metadata": {"k": ["x"]}}], "metadata 'k' of 'a'"),
        ([{"name": "a", "metadata": {"k": True}}], "metadata 'k' of 'a'"),
        ([{"name": "a", "metadata": {"": "x"}}], "metadata '' of 'a'"),
        ([{"name": "a", "metadata": {"k": "x" * 256}}], "metadata 'k' of 'a'"),
        ([{"name": "a", "hints": {"k": "x" * 5000}}], "hints of 'a' are"),
        ([{"name": "a", "hints": ["x"]}], "hints of 'a': give"),
        ([{"name": "a", "flavor": "m1\n"}], r"flavor 'm1\n' of 'a'"),
        ([{"name": "a", "availability_zone": "z" * 256}], "availability_zone 'zzz"),
    ],
)
def test_what_cannot_be_is_refused_by_name(entries: list[dict[str, t.Any]], message: str) -> None:
    with pytest.raises(NovaliteError) as caught:
        expand(entries)
    assert message in str(caught.value)


def test_hostnames_are_numbered_like_names() -> None:
    requests = expand([{"name": "web", "hostname": "Front", "count": 2}])
    assert [(request.name, request.hostname) for request in requests] == [("web-1", "front-1"), ("web-2", "front-2")]


def test_defaults() -> None:
    (request,) = expand([{"name": "web", "metadata": {"tier": "1"}}])
    assert request.networks is None
    assert request.security_groups == ("default",)
    assert request.metadata == {"tier": "1"}
    (bare,) = expand([{"name": "web", "security_groups": []}])
    assert bare.security_groups == ()


AMOUNTS = st.fixed_dictionaries({resource: st.integers(0, 50) for resource in QUOTA_RESOURCES})
LIMITS = st.fixed_dictionaries({}, optional={resource: st.integers(-1, 80) for resource in QUOTA_RESOURCES})


@given(AMOUNTS, AMOUNTS, LIMITS)
def test_quota_arithmetic(requested: dict[str, int], used: dict[str, int], limits: dict[str, int]) -> None:
    over = {
        resource
        for resource, limit in limits.items()
        if limit != -1 and requested[resource] > 0 and requested[resource] + used[resource] > limit
    }
    if not over:
        check_quota(requested, used, limits)
        return
    with pytest.raises(QuotaError) as caught:
        check_quota(requested, used, limits)
    named = str(caught.value).removeprefix("Quota exceeded for ").partition(":")[0]
    assert set(named.split(", ")) == over


def test_quota_message_is_novas() -> None:
    with pytest.raises(QuotaError) as caught:
        check_quota({"instances": 3, "cores": 3}, {"instances": 9, "cores": 9}, {"instances": 10, "cores": 20})
    assert str(caught.value) == "Quota exceeded for instances: Requested 3, but already used 9 of 10 instances"
    with pytest.raises(QuotaError) as caught:
        check_quota({"instances": 3, "cores": 6}, {"instances": 9, "cores": 18}, {"instances": 10, "cores": 20})
    assert str(caught.value) == (
        "Quota exceeded for instances, cores: Requested 3, 6, but already used 9, 18 of 10, 20 instances, cores"
    )


@given(st.integers(0, 4), st.integers(1, 4), st.integers(0, 3), st.integers(0, 4), st.integers(1, 4 * GIB))
def test_a_flavor_fits_or_is_refused(root: int, ram: int, min_ram: int, min_disk: int, virtual: int) -> None:
    flavor: t.Any = {"name": "f", "memory_mb": ram, "root_gb": root}
    image: t.Any = {"name": "i", "min_ram_mb": min_ram, "min_disk_gb": min_disk, "virtual_size": virtual}
    fits = ram >= min_ram and (root == 0 or (root >= min_disk and root * GIB >= virtual))
    if fits:
        check_fits("web", flavor, image)
    else:
        with pytest.raises(NovaliteError, match="flavor 'f' of 'web' is too small for image 'i'"):
            check_fits("web", flavor, image)


def test_differences_are_only_what_the_request_names() -> None:
    stored: t.Any = ({"name": "m1.tiny"}, {"id": "1234", "name": "ami"}, None)
    (same,) = expand([{"name": "web", "flavor": "m1.tiny", "image": "1234"}])
    assert differences(same, *stored) == []
    (silent,) = expand([{"name": "web"}])
    assert differences(silent, *stored) == []
    (other,) = expand([{"name": "web", "flavor": "m1.huge", "image": "ami", "key": "k"}])
    assert differences(other, *stored) == [
        {"name": "web", "field": "flavor", "requested": "m1.huge", "actual": "m1.tiny"},
        {"name": "web", "field": "key", "requested": "k", "actual": None},
    ]
