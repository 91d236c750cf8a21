"""Refuses to listen where strangers can connect and nothing would stop them."""

from collections.abc import Iterator

from kinference.config.schema import Config
from kinference.errors import ConfigError


def refuse_exposure(config: Config, *, insecure: bool) -> None:
    """Check each listener that is not on loopback.

    Raises ConfigError for the first that has no credential to ask for, unless `insecure` says that something else
    (a network policy, a mesh) guards it.
    """
    if insecure:
        return
    for problem in _exposed(config):
        raise problem


def _exposed(config: Config) -> Iterator[ConfigError]:
    listen = config.listen
    serves_strangers = config.allows_unauthenticated and not listen.is_mutual
    serves_nobody = not config.allows_unauthenticated and not config.gateway.keys
    if not listen.gateway.is_loopback and (serves_strangers or serves_nobody):
        yield ConfigError(
            "listen.gateway",
            f"{listen.gateway} can be reached from outside this machine and the gateway asks for no credential",
            "set gateway.keys and leave gateway.unauthenticated at reject, listen on 127.0.0.1, or pass --insecure",
        )
    for name, address in (("picker", listen.picker), ("admin", listen.admin)):
        if not address.is_loopback and not listen.is_mutual and not config.access.tokens:
            yield ConfigError(
                f"listen.{name}",
                f"{address} can be reached from outside this machine and the {name} port asks for no credential",
                "set access.tokens or listen.tls.client_ca, listen on 127.0.0.1, or pass --insecure where a network "
                "policy or a mesh guards the port",
            )
