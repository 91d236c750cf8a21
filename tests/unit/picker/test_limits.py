from kinference.picker.limits import PickerLimits


def test_the_defaults_are_those_of_the_configuration() -> None:
    limits = PickerLimits()
    assert (limits.body_max_bytes, limits.buffer_max_bytes, limits.chunk_max_bytes) == (33554432, 1073741824, 1048576)
    assert (limits.push_idle_timeout, limits.body_ttl, limits.ticket_ttl, limits.drain_timeout) == (30, 120, 3600, 30)


def test_a_pulled_chunk_stays_below_what_the_contract_lets_a_chunk_be() -> None:
    assert PickerLimits().pull_chunk_max_bytes <= 1048576
