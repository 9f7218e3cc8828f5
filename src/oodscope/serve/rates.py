"""RateLimit: no address asks more often than allowed; the rest of its requests are refused with the time to wait."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from math import ceil
from time import monotonic

from starlette.types import ASGIApp, Receive, Scope, Send

from oodscope.serve.answers import RefusedError


@dataclass(frozen=True)
class Rate:
    """What one address may ask for.

    Parameters
    ----------
    per_second : requests in the long run. A page and what belongs to it are about five.
    burst : requests at once after a pause.
    addresses : how many are remembered; the one that was silent for longest is forgotten first, and so begins anew.
    """

    per_second: float = 50.0
    burst: int = 1000
    addresses: int = 50_000


class Buckets:
    """A token bucket per address: ``burst`` tokens at most, ``per_second`` of them come back each second.

    Addresses of IPv6 count by their first 64 bits, of which one household or host has all.
    """

    def __init__(self, rate: Rate, clock: Callable[[], float] = monotonic) -> None:
        self.rate, self._clock = rate, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> float:
        """Take a token; 0, or the seconds until there is one."""
        now, key = self._clock(), _network(address)
        left, last = self._buckets.pop(key, (float(self.rate.burst), now))
        left = min(float(self.rate.burst), left + (now - last) * self.rate.per_second)
        taken = left >= 1
        self._buckets[key] = (left - taken, now)
        while len(self._buckets) > self.rate.addresses:
            self._buckets.popitem(last=False)
        return 0.0 if taken else (1 - left) / self.rate.per_second

    def __len__(self) -> int:
        return len(self._buckets)


class RateLimit:
    """Refuses what exceeds the rate, before anything is looked up or read.

    Loopback is free: it is the keeper, or a reverse proxy, behind which all readers have one address and which alone
    can count them.
    """

    def __init__(self, app: ASGIApp, rate: Rate) -> None:
        self.app, self._buckets = app, Buckets(rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        if scope["type"] == "http" and client is not None and not _loopback(client[0]):
            wait = self._buckets.take(client[0])
            if wait:
                rate = self._buckets.rate.per_second
                reason = f"more than {rate:g} requests a second come from your address; try again later"
                await RefusedError(429, reason, {"retry-after": str(ceil(wait))}).answer()(scope, receive, send)
                return
        await self.app(scope, receive, send)


def _network(address: str) -> str:
    try:
        parsed = ip_address(address)
    except ValueError:  # the name of a socket, or of a test
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    return str(parsed.ipv4_mapped or parsed.exploded[:19])


def _loopback(address: str) -> bool:
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return (mapped or parsed).is_loopback
