"""The counts of the ports, as they are shown."""

from kinference.observe.metrics import Metrics
from kinference.runtime.arrivals import Arrivals
from kinference.wire.connections import Connections
from kinference.wire.untaken import Untaken


def test_what_is_open_is_shown_and_what_was_refused_adds_up() -> None:
    arrivals, metrics = Arrivals(Untaken()), Metrics()
    at_gateway = Connections[int](1, 1, arrivals.gateway)
    arrivals.account.held = 7
    at_gateway.add(1, "10.0.0.1")
    for _ in range(3):
        assert not at_gateway.admits("10.0.0.2")
        arrivals.publish(metrics)
    page = metrics.exposition().decode()
    assert 'kinference_connections{port="gateway"} 1.0' in page
    assert 'kinference_connections_refused_total{port="gateway"} 3.0' in page
    assert 'kinference_connections_refused_total{port="admin"} 0.0' in page
    assert "kinference_untaken_bytes 7.0" in page
    at_gateway.discard(1)
    arrivals.publish(metrics)
    assert 'kinference_connections{port="gateway"} 0.0' in metrics.exposition().decode()


def test_streams_that_had_to_be_reset_add_up_by_what_for_and_begin_at_nothing() -> None:
    arrivals, metrics = Arrivals(Untaken()), Metrics()
    arrivals.publish(metrics)
    assert 'kinference_streams_reset_total{code="refused_stream",port="picker"} 0.0' in metrics.exposition().decode()
    for _ in range(2):
        arrivals.picker.resets.update({"refused_stream": 2, "protocol_error": 1})
        arrivals.publish(metrics)
    arrivals.publish(metrics)
    page = metrics.exposition().decode()
    assert 'kinference_streams_reset_total{code="refused_stream",port="picker"} 4.0' in page
    assert 'kinference_streams_reset_total{code="protocol_error",port="picker"} 2.0' in page
    assert 'kinference_streams_reset_total{code="refused_stream",port="gateway"} 0.0' in page


def test_what_peers_did_wrong_adds_up_and_a_flood_and_a_large_head_begin_at_nothing() -> None:
    arrivals, metrics = Arrivals(Untaken()), Metrics()
    for _ in range(2):
        arrivals.gateway.faults.update({"431": 2, "protocol_error": 1})
        arrivals.publish(metrics)
    arrivals.publish(metrics)
    page = metrics.exposition().decode()
    assert 'kinference_peer_faults_total{code="431",port="gateway"} 4.0' in page
    assert 'kinference_peer_faults_total{code="protocol_error",port="gateway"} 2.0' in page
    assert 'kinference_peer_faults_total{code="enhance_your_calm",port="picker"} 0.0' in page
