from kinference.config.schema import Limits
from kinference.config.values import Count, Size
from kinference.runtime.port_limits import grpc_limits, http_options
from kinference.wire.connections import Tally
from kinference.wire.grpc_session import GrpcLimits
from kinference.wire.http2.guard import RATES, Nuisance, Rate
from kinference.wire.server_options import HttpServerOptions
from kinference.wire.untaken import BYTES_MAX, Untaken

ACCOUNT, TALLY = Untaken(), Tally()
SET = Limits(
    chunk_max_bytes=Size(1),
    connections_max=Count(2),
    connections_per_peer_max=Count(3),
    streams_max=Count(4),
    header_list_max_bytes=Size(5),
    stream_resets_per_second=Count(6),
    pings_per_second=Count(7),
)


def test_the_defaults_are_the_carriers_own() -> None:
    assert grpc_limits(Limits(), ACCOUNT, TALLY) == GrpcLimits()
    assert http_options(Limits(), ACCOUNT, TALLY) == HttpServerOptions()
    assert Limits().untaken_max_bytes == BYTES_MAX


def test_bytes_that_wait_for_handlers_are_counted_in_one_account_for_all_ports() -> None:
    assert grpc_limits(SET, ACCOUNT, TALLY).http2.account is http_options(SET, ACCOUNT, TALLY).account is ACCOUNT
    assert grpc_limits(SET, ACCOUNT, TALLY).tally is http_options(SET, ACCOUNT, TALLY).tally is TALLY
    assert grpc_limits(SET, ACCOUNT, TALLY).http2.tally is TALLY


def test_every_configured_limit_reaches_the_picker() -> None:
    limits = grpc_limits(SET, ACCOUNT, TALLY)
    assert (limits.chunk_bytes_max, limits.connections_max, limits.connections_per_peer_max) == (1, 2, 3)
    assert (limits.http2.streams_max, limits.http2.header_list_bytes_max, limits.http2.header_block_bytes_max) == (
        4,
        5,
        5,
    )


def test_every_configured_limit_reaches_the_ports_of_http() -> None:
    options = http_options(SET, ACCOUNT, TALLY)
    assert (options.connections_max, options.connections_per_peer_max) == (2, 3)
    assert (options.streams_max, options.field_bytes_max) == (4, 5)


def test_rates_change_what_they_name_and_nothing_else() -> None:
    for rates in (grpc_limits(SET, ACCOUNT, TALLY).http2.rates, http_options(SET, ACCOUNT, TALLY).rates):
        assert rates[Nuisance.RESET] == Rate(24, 6, RATES[Nuisance.RESET].per_request)
        assert rates[Nuisance.CONTROL] == Rate(70, 7, RATES[Nuisance.CONTROL].per_request)
        assert [rates[kind] for kind in (Nuisance.FAULT, Nuisance.EMPTY)] == [
            RATES[Nuisance.FAULT],
            RATES[Nuisance.EMPTY],
        ]
