"""Refuses to listen where strangers can connect and nothing would stop them."""

from collections.abc import Iterator

from kinference.config.schema import Config
from kinference.errors import ConfigError
from kinference.runtime.planes import ALL, Plane


def refuse_exposure(config: Config, *, insecure: bool, planes: frozenset[Plane] = ALL) -> None:
    """Check each listener of these planes that is not on loopback.

    Raises ConfigError for the first that has no credential to ask for, unless `insecure` says that something else
    (a network policy, a mesh) guards it.
    """
    if insecure:
        return
    for problem in _exposed(config, planes):
        raise problem


def _exposed(config: Config, planes: frozenset[Plane]) -> Iterator[ConfigError]:
    listen = config.listen
    serves_strangers = config.allows_unauthenticated and not listen.is_mutual
    serves_nobody = not config.allows_unauthenticated and not config.gateway.keys
    if Plane.GATEWAY in planes and not listen.gateway.is_loopback and (serves_strangers or serves_nobody):
        yield ConfigError(
            "listen.gateway",
            f"{listen.gateway} can be reached from outside this machine and the gateway asks for no credential",
            "set gateway.keys and leave gateway.unauthenticated at reject, listen on 127.0.0.1, or pass --insecure",
        )
    guarded = [("admin", listen.admin)]
    if Plane.PICKER in planes:
        guarded.insert(0, ("picker", listen.picker))
    elif Plane.CONTROL in planes:
        guarded.insert(0, ("control", listen.control))
    for name, address in guarded:
        if not address.is_loopback and not listen.is_mutual and not config.access.tokens:
            yield ConfigError(
                f"listen.{name}",
                f"{address} can be reached from outside this machine and the {name} port asks for no credential",
                "set access.tokens or listen.tls.client_ca, listen on 127.0.0.1, or pass --insecure where a network "
                "policy or a mesh guards the port",
            )
