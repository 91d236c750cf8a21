"""What a configuration says of connections, in the terms of the carriers."""

from dataclasses import replace

from kinference.config.schema import Limits
from kinference.wire.connections import Tally
from kinference.wire.grpc_session import GrpcLimits
from kinference.wire.http2.guard import Http2Limits, rates
from kinference.wire.server_options import HttpServerOptions
from kinference.wire.untaken import Untaken


def grpc_limits(limits: Limits, account: Untaken, tally: Tally) -> GrpcLimits:
    """Of the picker's port."""
    nuisances = rates(limits.stream_resets_per_second, limits.pings_per_second)
    http2 = Http2Limits(account=account, tally=tally, rates=nuisances)
    if limits.streams_max is not None:
        http2 = replace(http2, streams_max=limits.streams_max)
    if limits.header_list_max_bytes is not None:
        most = limits.header_list_max_bytes
        http2 = replace(http2, header_list_bytes_max=most, header_block_bytes_max=most)
    return GrpcLimits(
        limits.chunk_max_bytes, limits.connections_max, limits.connections_per_peer_max, http2=http2, tally=tally
    )


def http_options(limits: Limits, account: Untaken, tally: Tally) -> HttpServerOptions:
    """Of the gateway and the admin port."""
    options = HttpServerOptions(
        connections_max=limits.connections_max,
        connections_per_peer_max=limits.connections_per_peer_max,
        rates=rates(limits.stream_resets_per_second, limits.pings_per_second),
        account=account,
        tally=tally,
    )
    if limits.streams_max is not None:
        options = replace(options, streams_max=limits.streams_max)
    if limits.header_list_max_bytes is not None:
        options = replace(options, field_bytes_max=limits.header_list_max_bytes)
    return options
