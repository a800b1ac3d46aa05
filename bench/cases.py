"""The work that is measured under load, and what must come of it."""

import dataclasses

KIB, MIB = 1024, 1024 * 1024


@dataclasses.dataclass(frozen=True)
class Variant:
    """One of the servers that a case compares."""
    name: str
    kind: str  # weird, nginx or haproxy
    setup: dict = dataclasses.field(default_factory=dict)  # what differs from peers.DEFAULTS
    paths: int = 1  # distinct ones that it is asked for, in turn
    waiting: int = 0  # requests that wait for another resource meanwhile
    replicas: int = 1  # of one cluster; the load goes to one of them, and to the others only before each round


@dataclasses.dataclass(frozen=True)
class Goal:
    """A ratio in one round, by the median over all rounds."""
    variant: str
    base: str
    at_most: float
    metric: str = "cpu"


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    title: str
    variants: tuple
    goals: tuple = ()
    connections: int = 64
    body: int = 128  # bytes of each answer,
    sent: int = 0  # and of each request
    spread: bool = False  # the servers may use every core, which they share with the load
    rounds: int = 1  # as a multiple of what is asked for: more, where the figure is a noisy one

    @property
    def base(self):
        """What the others are shown as multiples of."""
        return self.goals[0].base if self.goals else "nginx"


def three(**setup):
    return tuple(Variant(kind, kind, setup) for kind in ("weird", "nginx", "haproxy"))


def paths(count):
    return tuple(Variant(kind, kind, {"max_resources": 2 * count}, paths=count) for kind in ("weird", "nginx", "haproxy"))


WAITING = 50_000  # where there are file descriptors for so many
GROWTH = (10, 1_000, 100_000, 1_000_000)  # paths
OVERFLOW = "1,000,000 paths, 100,000 remembered"


def all_cases(waiting=WAITING):
    return (
        Case("small", "Small answers, 64 connections, limited", three(),
             (Goal("weird", "nginx", 1.00), Goal("weird", "nginx", 1.00, "p99")), rounds=3),
        Case("unlimited", "Small answers, 64 connections, no limit", three(limited=False)),
        Case("one", "Small answers, 1 connection, limited", three(), (Goal("weird", "nginx", 1.00),), connections=1),
        Case("thousand", "Small answers, 1,000 connections, limited", three(), (Goal("weird", "nginx", 1.00),),
             connections=1000),
        Case("middling", "10 KiB both ways, 64 connections, limited", three(), body=10 * KIB, sent=10 * KIB),
        Case("large", "1 MiB both ways, 16 connections, limited", three(), (Goal("weird", "nginx", 1.10),),
             connections=16, body=MIB, sent=MIB),
        Case("paths", "Small answers for 100,000 paths, each with its limit", paths(100_000), (Goal("weird", "nginx", 1.00),)),
        Case("growth", "Small answers for 10 to 1,000,000 paths, each with its limit",
             (*(Variant(f"{count:,} paths", "weird", {"max_resources": 1_100_000}, paths=count) for count in GROWTH),
              Variant(OVERFLOW, "weird", {"max_resources": 100_000}, paths=GROWTH[-1])),
             tuple(Goal(name, "10 paths", 1.10) for name in (*(f"{count:,} paths" for count in GROWTH[1:]), OVERFLOW))),
        Case("beside", "Small answers, while requests wait for another resource",
             (Variant("none wait", "weird"), Variant(f"{waiting:,} wait", "weird", waiting=waiting)),
             (Goal(f"{waiting:,} wait", "none wait", 1.10),)),
        Case("store", "Small answers, limited by one process alone and through etcd",
             (Variant("alone", "weird"), Variant("etcd", "weird", {"etcd": True}),
              Variant("etcd, 3 replicas, load on one", "weird", {"etcd": True}, replicas=3)),
             (Goal("etcd", "alone", 1.05), Goal("etcd, 3 replicas, load on one", "alone", 1.05))),
        Case("idle", "Small answers, with retries and a throttle that have nothing to do",
             (Variant("neither", "weird"), Variant("retries", "weird", {"retries": True}),
              Variant("throttle", "weird", {"throttle": True}),
              Variant("both", "weird", {"retries": True, "throttle": True})),
             (Goal("retries", "neither", 1.05), Goal("both", "neither", 1.05))),
        Case("workers", "Small answers, one worker and two, on cores shared with the load",
             (Variant("weird, 1", "weird"), Variant("weird, 2", "weird", {"workers": 2}),
              Variant("nginx, 1", "nginx"), Variant("nginx, 2", "nginx", {"workers": 2})),
             (Goal("weird, 2", "weird, 1", 2 / 1.7),), spread=True),
    )
