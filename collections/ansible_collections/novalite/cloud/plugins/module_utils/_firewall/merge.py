# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A request merged into what a host has: which of novalite's chains have to be written, which removed. Pure.

Looks at what the request names, and at everything only when the host's rules were read just now: a change for one
instance among thousands must not cost what the thousands cost.
"""

from __future__ import annotations

import collections
import functools
import typing as t

from .._errors import NovaliteError
from . import devices, dispatch, owners, passage, policy, ruleset, tree
from .arguments import Request
from .dispatch import IN, OUT
from .present import Changes, Present, chains_of, group_jumps, groups_of, roots_of, sets_in, whos
from .rules import label, members_in, of_members

_GROUPS = tuple(policy.GROUP_CHAINS)


def merge(present: Present, request: Request, family: str) -> Changes:
    """Raises NovaliteError for a group that is neither given nor on the host, and for a bridge without a zone."""
    return _Merge(present, request, family).changes


class _Merge:
    def __init__(self, present: Present, request: Request, family: str) -> None:
        self.present, self.request, self.family = present, request, family
        self.is_present = request.state == "present"
        self.instances = {str(instance.id): instance for instance in request.instances}
        given_groups = request.groups if self.is_present else ()
        self.told_groups = {group.id: group for group in given_groups}
        self.groups = {group.id: group for group in given_groups if group.rules is not None}
        self.zones = {**present.zones, **(request.zones if self.is_present else {})}  # by bridge, of all we know
        self.scopes = {None: dispatch.EVERYWHERE}  # type: dict[int | None, str]
        self.scopes.update((zone, scope) for scope, zone in self.zones.items())
        leads = owners.merged(present.inbound, self.instances, self.is_present, request.is_everything, family)
        self.keys = leads.keys
        self.changes = Changes(inbound=leads.inbound, moved=leads.moved, arrived=leads.arrived, crowded=leads.crowded)
        self.all = {}  # type: dict[str, tuple[str, ...]] # what was looked at and shall be there
        instances = self.instances if self.is_present else {}
        self.changes.devices = devices.merged(
            present.devices,
            {who: instances[who].devices if who in instances else () for who in self.instances},
            {who: instance.open_devices for who, instance in instances.items()},
            not self.request.is_everything,
            family,
        )
        self.by_device = self.changes.devices[devices.TO.root]
        self.all_devices = devices.of(devices.ASKING, self.changes.devices)
        if any(self.changes.inbound.values()) or self.all_devices:
            self._zones()
            self._instances()
            self._group_chains()
            self._dispatch()
            self._passages()
        self._differences()

    # -- chains of instances

    def _instances(self) -> None:
        changes, present = self.changes, self.present
        before, after = (
            {scopes[scope][key] for scope, keys in self.keys.items() for key in keys if key in scopes.get(scope, ())}
            for scopes in (present.inbound, changes.inbound)
        )
        before |= {
            who for device, who in present.devices.get(devices.TO.root, {}).items() if self.by_device.get(device) != who
        }
        leaving = before - self._staying() if before else set()
        writing = {who for who in after if "+" in who}
        if self.is_present:
            writing |= {who for who, instance in self.instances.items() if instance.is_in(self.family)}
            writing |= {
                who
                for scope in changes.inbound.values()
                if "+" in "".join(scope.values())
                for who in set(scope.values())
                if not self.instances.keys().isdisjoint(who.split("+"))
            }
        writing |= self._carriers(self._turned())
        changes.users = collections.Counter(present.users)
        self.touched_groups = set()  # type: set[str]
        self.restricted = {}  # type: dict[str, bool]
        for who in sorted(writing, key=_by_number):
            self._write(who)
        counted = whos(present.inbound) | set(devices.of(devices.TO, present.devices).values())
        for who in leaving | writing:
            is_counted = who in counted  # or nothing leads to it, and `users` does not know it
            if (
                is_counted
                and who in writing
                and all(self.all.get(name) == present.chains.get(name) for name in chains_of(who)[:3])
            ):
                continue
            old_groups = groups_of(present.chains, who) if is_counted else set()
            new_groups = set() if who in leaving else groups_of(self.all, who)
            changes.users.subtract(old_groups - new_groups)
            changes.users.update(new_groups - old_groups)
            self.touched_groups |= old_groups ^ new_groups
        changes.users = +changes.users
        self.leaving = leaving
        self.outgoing(writing)

    def _staying(self) -> set[str]:
        """Everybody whom an address or a device leads to afterwards."""
        return whos(self.changes.inbound) | set(self.by_device.values())

    def _write(self, who: str) -> None:
        numbers = who.split("+")
        rules = self.present.chains.get(f"{policy.INSTANCE}{who}", ())
        instance = self.instances.get(who) if self.is_present else None
        groups = list(instance.security_groups) if instance else self._common_groups(numbers)
        restricted = owners.is_crowded(who) or any(
            self._restricts(group) for number in numbers for group in self._groups_of(number)
        )
        self.restricted[who] = restricted
        if instance:
            scopes, servers = instance.scopes(self.family), (instance.dhcp_servers, instance.ra_servers)
            open_networks, uuid = instance.open_networks, instance.uuid
        elif len(numbers) > 1:
            scopes = {scope for scope, entries in self.changes.inbound.items() if who in entries.values()}
            servers, open_networks, uuid = ((), ()), (), None
        else:  # as it was told when it was given
            in_zones = {zone for _group, zone in self._jumps_of(who)}
            scopes = {self.scopes[zone] for zone in in_zones & self.scopes.keys()}
            servers, open_networks, uuid = policy.servers_of(rules), policy.open_networks_of(rules), None
        zones = {scope: self._zone(scope) for scope in scopes}
        if instance and instance.devices and self.family == "IPv6":
            addresses = (instance.of(self.family), instance.shared_of(self.family))
            self.all[devices.TARGETS + who] = (
                devices.targets_chain(*([cidr for _scope, cidr in of] for of in addresses))
                if self.request.targets
                else devices.ANY_TARGET
            )
        uuid = uuid or policy.uuid_of(rules)
        for chain in policy.inbound_chains(who, self.family, groups, zones, restricted, *servers, open_networks, uuid):
            self.all[chain.name] = chain.rules
        if restricted:
            chain = policy.outbound_chain(who, self.family, groups, zones, open_networks)
            self.all[chain.name] = chain.rules

    def _common_groups(self, numbers: t.Sequence[str]) -> list[int]:
        """List the groups common to all instances that may use an address: so whoever holds it, nothing can reach it
        but what its own groups allow."""
        first, *others = map(self._groups_of, numbers)
        return [group for group in first if all(group in groups for groups in others)]

    def _groups_of(self, number: str) -> list[int]:
        if self.is_present and number in self.instances:
            return list(self.instances[number].security_groups)
        return list(dict.fromkeys(group for group, _zone in self._jumps_of(number)))

    def _jumps_of(self, who: str) -> list[tuple[int, int | None]]:
        """The groups and zones of the chains that judge what comes to somebody, as it is."""
        jumps = group_jumps(self.present.chains.get(f"{policy.INSTANCE}{who}", ()))
        return [policy.group_of(jump[len(policy.GROUP) :]) for jump in jumps if jump.startswith(policy.GROUP)]

    def _restricts(self, group: int) -> bool:
        return self.groups[group].restricts if group in self.groups else self._restricted_so_far(group)

    def _restricted_so_far(self, group: int) -> bool:
        return any(self.present.chains.get(name) for name in self._variants(policy.EGRESS, group))

    def _turned(self) -> set[int]:
        """The groups that get their first egress rule, or lose the last one."""
        return {
            number
            for number, group in self.groups.items()
            if group.restricts != self._restricted_so_far(number)
            and any(self.present.users[name] > 0 for name in self._variants(policy.GROUP, number))
        }

    def _carriers(self, groups: set[int]) -> set[str]:
        """Carriers of one of the groups, also where he is not given: egress rules now apply to him, or do no more.

        One with a further group whose rules nobody said is left as he is: what would answer these is not known.
        """
        carriers = set()  # type: set[str]
        for who in self._staying() if groups else ():
            mine = {group for number in who.split("+") for group in self._groups_of(number)}
            if not groups.isdisjoint(mine) and (all(map(self._is_said, mine)) or not any(map(self._restricts, mine))):
                carriers.add(who)
        return carriers

    def _is_said(self, group: int) -> bool:
        chains = self.present.chains
        return group in self.groups or any(name in chains for name in self._variants(policy.INGRESS_ANSWERS, group))

    def outgoing(self, writing: t.Iterable[str]) -> None:
        """The same addresses, by source, of the instances to which egress rules apply."""
        writing = set(writing)
        self.out_keys = {}  # type: dict[str, set[str]]
        outbound = {scope: dict(entries) for scope, entries in self.present.outbound.items()}
        if outbound or any(self.restricted.values()):
            for scope in {**dict.fromkeys(outbound), **dict.fromkeys(self.changes.inbound)}:
                inbound, entries = self.changes.inbound.get(scope, {}), outbound.setdefault(scope, {})
                keys, moved = self.out_keys.setdefault(scope, set()), self.keys.get(scope, set())
                for key in list(entries):
                    who = inbound.get(key)
                    if who is None or not self._is_bound(who):
                        del entries[key]
                        keys.add(key)
                for key, who in inbound.items():
                    # also one who is not given: an address that he shared may be his alone now
                    if (who in writing or key in moved) and self._is_bound(who) and entries.get(key) != who:
                        entries[key] = who
                        keys.add(key)
        # Who is written here may have got egress rules, or lost them; of the others it is known.
        from_devices = self.changes.devices[devices.FROM.root]
        from_devices.update({device: who for device, who in self.by_device.items() if who in writing})
        self.changes.devices[devices.FROM.root] = {
            device: who for device, who in from_devices.items() if self.restricted.get(who, True)
        }
        isolated = (
            {scope for scope, entries in self.changes.inbound.items() if scope != dispatch.EVERYWHERE and entries}
            if any(outbound.values())
            else set()
        )
        self.changes.outbound = {scope: entries for scope, entries in outbound.items() if entries or scope in isolated}

    def _is_bound(self, who: str) -> bool:
        """Tell whether egress rules apply to him: as it is being written, or else as it is."""
        return self.restricted[who] if who in self.restricted else policy.OUT_OF + who in self.present.chains

    # -- chains of groups

    def _variants(self, prefix: str, group: int) -> t.Iterator[str]:
        """The names of a group's chain, for the networks that are here."""
        for zone in self.scopes:
            yield prefix + policy.zoned(group, zone)

    def _group_chains(self) -> None:
        users, chains = self.changes.users, self.present.chains
        by_member = [number for number, group in self.told_groups.items() if group.tells_members]
        if self.present.ruleset is None:
            names = {name for name in self.touched_groups if users[name] > 0}
            names |= {
                name
                for name in users
                if by_member and name in chains and any(" --comment " in rule for rule in chains[name])
            }
            names.update(
                name
                for group in self.groups
                for prefix in policy.GROUP_CHAINS
                for name in self._variants(prefix, group)
                if users[name] > 0
            )
        else:
            names = set(users)
        for name in sorted(names):
            prefix = next(prefix for prefix in policy.GROUP_CHAINS if name.startswith(prefix))
            number, zone = policy.group_of(name[len(prefix) :])
            option = "-s" if prefix in (policy.GROUP, policy.EGRESS_ANSWERS) else "-d"
            addresses_of = functools.partial(self._addresses_of, zone, chains.get(name, ()), option)
            if number in self.groups:
                sources = functools.partial(self._sources, zone, addresses_of)
                self.all[name] = policy.group_chain(prefix, self.groups[number], zone, self.family, sources).rules
            elif name in chains:
                self.all[name] = chains[name]
                for group in by_member:
                    labelled = label(policy.SET + policy.zoned(group, zone))
                    self.all[name] = of_members(self.all[name], option, labelled, addresses_of(group))
            else:
                raise NovaliteError(
                    f"security group {number} is used by an instance, but is neither among security_groups nor on "
                    "this host; give it with its rules"
                )

    def _sources(
        self, zone: int | None, addresses_of: t.Callable[[int], t.Sequence[str]], group: int
    ) -> t.Sequence[str]:
        if self.request.sets:
            return (f"-m set --match-set {policy.set_name(policy.zoned(group, zone), self.family)}",)
        return (label(policy.SET + policy.zoned(group, zone)), *addresses_of(group))

    def _addresses_of(self, zone: int | None, before: t.Sequence[str], option: str, group: int) -> tuple[str, ...]:
        """The members of a group, of whom a chain has had those `before`."""
        if group not in self.told_groups or zone not in self.scopes:
            return ()
        there = members_in(before, option, label(policy.SET + policy.zoned(group, zone)))
        content = self.told_groups[group].content(self.scopes[zone])
        return policy.hosts(sorted(content.of(there, self.family)), self.family)

    # -- what leads to them

    def _zone(self, scope: str) -> int | None:
        if scope == dispatch.EVERYWHERE:
            return None
        if scope not in self.zones:
            raise NovaliteError(f"the bridge {scope} has addresses of its own, but no conntrack zone: give it in zones")
        return self.zones[scope]

    def _zones(self) -> None:
        for scope, entries in self.changes.inbound.items():
            zone = self._zone(scope) if entries else None
            if zone is not None:
                self.changes.zones[scope] = zone
        if self.changes.zones:
            self.all[policy.ZONES] = tuple(
                f"-i {bridge} -j CT --zone {zone}" for bridge, zone in sorted(self.changes.zones.items())
            )

    def _dispatch(self) -> None:
        changes, present = self.changes, self.present
        self.all[policy.FALLBACK[self.family]] = ("-j DROP",)
        host_rules = present.chains.get(devices.ASKED)
        self.all.update(
            (devices.OPEN.target + who, devices.JUDGED_BY_NOBODY) for who in changes.devices[devices.OPEN.root].values()
        )
        if self.all_devices:
            opened = self.request.opened if self.is_present else None
            self.all[devices.ASKED] = (
                host_rules if host_rules and opened is None else passage.host_chain(self.family, opened or ())
            )
        elif host_rules is not None:
            changes.gone.append(devices.ASKED)
        before, after = devices.heads(present.devices), devices.heads(changes.devices)
        difference, is_read = tree.Difference(), present.ruleset is not None  # then all is compared with what is there
        for by_device in (*devices.SIDES, devices.ASKING):
            then, now = devices.of(by_device, present.devices), devices.of(by_device, changes.devices)
            difference.add(devices.changed(by_device, {} if is_read else then, now, self.family))
        for side, old, new, keys in (
            (IN, present.inbound, changes.inbound, self.keys),
            (OUT, present.outbound, changes.outbound, self.out_keys),
        ):
            difference.add(
                dispatch.changed(side, {}, new, self.family, heads=((), after[side.root]))
                if is_read
                else dispatch.changed(side, old, new, self.family, keys, (before[side.root], after[side.root]))
            )
        self.all.update(difference.chains)
        changes.gone += difference.gone
        changes.before = difference.before
        changes.roots = roots_of(changes)

    def _passages(self) -> None:
        request, there = self.request, self.present.chains
        chains = {name: there[name] for name in passage.CALLED_FROM if name in there}
        if self.is_present:
            bridges = {bridge: bridge in self.zones for bridge in request.bridges}
            passages = passage.chains(
                chains, self.present.dropping, bridges, request.serving, self.family, keep=not request.exclusive
            )
        else:
            passages = passage.without(chains, request.bridges)
        self.all.update(passages)
        self.changes.roots |= passages.keys()
        self.changes.gone += [name for name in chains if name not in passages]

    def _differences(self) -> None:
        changes, present = self.changes, self.present
        changes.inbound = {scope: entries for scope, entries in changes.inbound.items() if entries}
        if not changes.inbound and not self.all_devices:
            changes.is_last = True
            changes.gone = sorted(present.chains)
            return
        chains = present.chains
        if present.ruleset is None:
            for who in self.leaving:
                changes.gone += [name for name in chains_of(who) if name in chains]
            changes.gone += [
                policy.OUT_OF + who
                for who, restricted in self.restricted.items()
                if not restricted and policy.OUT_OF + who in chains
            ]
            changes.gone += [
                prefix + who
                for who in self.instances
                for prefix in (devices.TARGETS, devices.OPEN.target)
                if prefix + who in chains
            ]
            changes.gone += [name for name in self.touched_groups if name in chains and not changes.users[name]]
            if not changes.zones and present.zones:
                changes.gone.append(policy.ZONES)
        else:
            kept = {name for who in self._staying() for name in chains_of(who)[:2]}
            kept |= {policy.OUT_OF + who for who in whos(changes.outbound)}
            kept |= {policy.OUT_OF + who for who in changes.devices[devices.FROM.root].values()}
            kept |= {devices.TARGETS + who for who in changes.devices[devices.ND.root].values()}
            changes.gone = sorted(name for name in chains if name not in self.all and name not in kept)
        changes.gone = [name for name in dict.fromkeys(changes.gone) if name not in self.all]
        changes.differing_chains = ruleset.differing(self.all, chains)
        changes.sets = present.sets
        if any(name.startswith(_GROUPS) for name in (*changes.differing_chains, *changes.gone)):
            changes.sets = sets_in(
                {name: self.all[name] if name in self.all else chains[name] for name in changes.users}
            )


def _by_number(who: str) -> list[int]:
    return [int(number) for number in who.split("+")]
