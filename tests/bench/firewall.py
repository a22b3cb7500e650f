"""firewall.*: the module's core beside the raw commands, and packets beside three rules, in network namespaces.

Everything that changes tables does so in a pair of namespaces with the same rules: ours in one, the raw commands, fed
with the very texts that ours wrote, in the other, in turn.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import multiprocessing
import os
import statistics
import tempfile
import time
import typing as t
import uuid

from ansible_collections.novalite.cloud.plugins.module_utils._firewall import apply, arguments
from ansible_collections.novalite.cloud.plugins.module_utils._host.command import run as command
from tests.bench import firewall_packets

FEW, MANY = 500, 5000
GROUP_SIZE = 50  # instances of one group
BACKENDS = ("nft", "legacy")
ROUNDS = int(os.environ.get("NOVALITE_BENCH_ROUNDS", "11"))
_CLONE_NEWNET = 0x40000000

Figure = dict[str, t.Any]
Texts = list[tuple[str, str]]  # family, what was restored


def run(prefix: str) -> t.Iterator[Figure]:
    benches: list[tuple[tuple[str, ...], t.Callable[[t.Any], t.Iterator[Figure]], t.Any]] = [
        *((_names(backend, count), _changes, (backend, count)) for count in (FEW, MANY) for backend in BACKENDS),
        *(
            ((f"firewall.{kind}_{number}",), firewall_packets.cost, (kind, number))
            for kind, numbers in (("packet", (100, FEW, 1000, MANY)), ("bridged", (100, FEW)))
            for number in numbers
        ),
    ]
    for names, bench, values in benches:
        if any(name.startswith(prefix) for name in names):
            for figure in _in_child(bench, values):
                if figure["bench"].startswith(prefix):
                    yield figure


def _names(backend: str, count: int) -> tuple[str, str, str, str]:
    """Of build, no-op, one and fifty more: those of nft and MANY came first and have the short ones."""
    suffix = "" if backend == "nft" else f"_{backend}"
    of_count = "" if count == MANY else f"_{count}"
    return (
        f"firewall.build{count}{suffix}",
        f"firewall.noop{of_count}{suffix}",
        f"firewall.one_of_{count}_{backend}",
        f"firewall.fifty_vs_one{of_count}{suffix}",
    )


def _in_child(bench: t.Callable[[t.Any], t.Iterator[Figure]], argument: t.Any) -> list[Figure]:
    """Run a bench in a process of its own: it moves between network namespaces, which end with it."""
    receiver, sender = multiprocessing.get_context("fork").Pipe(duplex=False)

    def work() -> None:
        sender.send(list(bench(argument)))

    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    sender.close()
    try:
        return t.cast("list[Figure]", receiver.recv())
    except EOFError:
        raise SystemExit(f"the benchmark {bench.__name__}({argument}) failed; it needs root and iptables") from None
    finally:
        child.join()


class Namespace:
    """A fresh network namespace; this process is in it afterwards."""

    _libc = ctypes.CDLL(None, use_errno=True)

    def __init__(self) -> None:
        if self._libc.unshare(_CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "unshare")
        self._fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    def enter(self) -> None:
        if self._libc.setns(self._fd, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


def instances(first: int, count: int) -> list[Figure]:
    """As the plan has them: an IPv4 address, the link-local one, a tap device, one group."""
    return [
        {
            "id": number,
            "addresses": [
                f"10.0.{number >> 8}.{number & 255}",
                f"fe80::f816:3eff:fe{number >> 16:02x}:{number & 65535:x}",
            ],
            "devices": [device(number)],
            "dhcp_servers": ["10.0.255.254"],
            "security_groups": [number // GROUP_SIZE],
        }
        for number in range(first, first + count)
    ]


def device(number: int) -> str:
    """`tap` and the beginning of a UUID that is another at each of its places."""
    return f"tap{uuid.uuid5(uuid.NAMESPACE_OID, str(number))}"[:14]


def groups(of: t.Iterable[Figure]) -> list[Figure]:
    rules = [
        *({"protocol": "tcp", "port_min": port, "cidr": "0.0.0.0/0"} for port in (22, 80, 443)),
        {"protocol": "icmp"},
        {"protocol": "icmpv6", "ethertype": "IPv6"},
    ]
    return [{"id": number, "rules": rules} for number in sorted({figure["security_groups"][0] for figure in of})]


def ensure(params: t.Sequence[Figure], backend: str, directory: str, **values: t.Any) -> apply.Outcome:
    """What the module `firewall` does behind its arguments."""
    request = arguments.Request(
        tuple(arguments.parse_instances(params)), tuple(arguments.parse_groups(groups(params))), **values
    )
    return apply.apply(request, backend=backend, directory=directory)


class Recorder(apply.Tables):
    """Remembers what is restored."""

    texts: t.ClassVar[Texts] = []

    def write(self, family: str, text: str) -> None:
        self.texts.append((family, text))
        super().write(family, text)

    @classmethod
    def taken(cls) -> Texts:
        texts = list(cls.texts)
        cls.texts.clear()
        return texts


def _raw(texts: Texts, backend: str) -> None:
    for family, text in texts:
        name = "iptables" if family == "IPv4" else "ip6tables"
        command([f"{name}-{backend}-restore", "--noflush", "--wait", "20"], stdin=text)


def _save(backend: str) -> None:
    for name in ("iptables", "ip6tables"):
        command([f"{name}-{backend}-save"])


def _changes(of: tuple[str, int]) -> t.Iterator[Figure]:
    backend, count = of
    build, noop, one_more, fifty_vs_one = _names(backend, count)
    apply.Tables = Recorder  # type: ignore[misc]  # the class is replaced on purpose
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        everybody = instances(1, count)
        builds, saves = [], []
        for round_ in range(2):
            ours, reference = Namespace(), Namespace()
            kept = os.path.join(directory, str(round_))
            ours.enter()
            mine = timed(lambda: ensure(everybody, backend, kept))  # noqa: B023  # called at once
            texts = Recorder.taken()
            reference.enter()
            builds.append((mine, timed(lambda: _raw(texts, backend))))  # noqa: B023  # called at once
        yield _figure(build, builds)
        for _round in range(5):
            ours.enter()
            mine = timed(lambda: ensure(everybody, backend, kept))
            saves.append((mine, timed(lambda: _save(backend))))
        assert not Recorder.taken()
        yield _figure(noop, saves)
        singles, fifties = [], []
        following = count + 1
        for _round in range(ROUNDS):
            single = _both(instances(following, 1), backend, kept, ours, reference)
            singles.append(single)
            following += 1
            fifty = _both(instances(following, 50), backend, kept, ours, reference)
            fifties.append((fifty[0], single[0]))
            following += 50
        yield _figure(one_more, singles)
        yield _figure(fifty_vs_one, fifties)


def _both(
    new: t.Sequence[Figure], backend: str, kept: str, ours: Namespace, reference: Namespace
) -> tuple[float, float]:
    """Seconds for ours and for the raw commands, which get the same lines."""
    ours.enter()
    mine = timed(lambda: ensure(new, backend, kept))
    texts = Recorder.taken()
    assert texts
    reference.enter()
    return mine, timed(lambda: _raw(texts, backend))


def timed(work: t.Callable[[], t.Any]) -> float:
    gc.collect()
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _figure(name: str, pairs: t.Sequence[tuple[float, float]]) -> Figure:
    ours, reference = (statistics.median(values) * 1000 for values in zip(*pairs))
    return {
        "bench": name,
        "ours": round(ours, 2),
        "reference": round(reference, 2),
        "ratio": round(statistics.median(a / b for a, b in pairs), 3),
        "unit": "ms",
    }
