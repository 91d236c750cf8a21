"""What the planes of one process have of each other: by direct call, or over gRPC from another process."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from kinference.config.schema import Config
from kinference.errors import ConfigError
from kinference.picker.apart import PickerApart
from kinference.picker.inprocess import InProcessPicker
from kinference.picker.remote import RemotePicker
from kinference.ports import Picker
from kinference.runtime.backend_sources import BundleSource
from kinference.runtime.build import Parts
from kinference.runtime.control import Control, control_plane
from kinference.runtime.followed_backends import FollowedBackends
from kinference.runtime.planes import PeerTokens, Plane, channel_to
from kinference.sandbox.polling import BundleClient, FetchedBundle, NoBundle

Work: TypeAlias = Callable[[], Coroutine[None, None, None]]


@dataclass(frozen=True, slots=True)
class Links:
    """The planes as the gateway and the admin port reach them."""

    planes: frozenset[Plane]
    picker: Picker
    backends: FollowedBackends
    control: Control | None
    """None where another process keeps the records."""
    tokens: PeerTokens
    trouble: Callable[[], str | None]
    """What keeps another process from being asked, as far as that is known now."""
    works: Sequence[Work]
    """What is to run as long as they are used."""


async def link(
    config: Config, parts: Parts, planes: frozenset[Plane], environ: Mapping[str, str], stack: AsyncExitStack
) -> Links:
    """Reach every plane that those of this process need. Raises ConfigError when it is not said where one is."""
    check_reach(config, planes)
    control, tokens = None, PeerTokens(config.planes)
    works: list[Work] = []
    if Plane.CONTROL in planes:
        plane = control_plane(config, environ, parts.clock, parts.metrics, parts.access)
        control = await stack.enter_async_context(plane)
    backends = control.backends if control is not None else await _followed(config, tokens, works, stack)
    backends.configure(config)
    await backends.refresh()
    peer = config.planes.picker
    if peer is None or Plane.PICKER in planes or Plane.GATEWAY not in planes:
        return Links(planes, InProcessPicker(parts.desk), backends, control, tokens, lambda: None, works)
    channel = await stack.enter_async_context(channel_to(peer, "planes.picker"))
    remote = RemotePicker(channel.channel, tokens.picker, config.limits.chunk_max_bytes)
    works.append(partial(channel.run, remote.use))
    apart = await stack.enter_async_context(PickerApart(remote))
    trouble = f"the picker at {peer.url} does not answer; is it up, and planes.picker right?"
    return Links(planes, apart, backends, control, tokens, lambda: None if remote.is_connected else trouble, works)


def check_reach(config: Config, planes: frozenset[Plane]) -> None:
    """Raises ConfigError for a gateway that would not know whom to ask."""
    if Plane.GATEWAY not in planes:
        return
    if Plane.PICKER not in planes and config.planes.picker is None:
        raise ConfigError("planes.picker", "a gateway by itself asks a picker", "write http://HOST:PORT of one")
    if Plane.CONTROL in planes:
        return
    for place, backend in enumerate(config.backends):
        if backend.provider is not None:
            fix = "name a route of its bundle, or add control to --planes"
            raise ConfigError(f"backends[{place}].provider", "records stay with the control plane", fix)
        if backend.route is not None and config.planes.control is None:
            fix = "write http://HOST:PORT of one, or add control to --planes"
            raise ConfigError("planes.control", f"backends[{place}] follows a route of a control plane", fix)


async def _followed(config: Config, tokens: PeerTokens, works: list[Work], stack: AsyncExitStack) -> FollowedBackends:
    peer = config.planes.control
    if peer is None:
        return FollowedBackends(BundleSource(_nowhere))
    channel = await stack.enter_async_context(channel_to(peer, "planes.control"))
    client = BundleClient(channel.channel, tokens.control)
    works.append(partial(channel.run, client.use))
    return FollowedBackends(BundleSource(client.fetch))


async def _nowhere() -> FetchedBundle:
    raise NoBundle("planes.control does not say where the control plane is")
