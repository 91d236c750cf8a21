from kinference.gateway.engine_gaps import KNOWN_MAX, REMEMBERED, EngineGaps
from kinference.ids import Address

ENGINE = Address("10.0.0.1:8000")


def test_a_gap_is_remembered_for_a_while() -> None:
    gaps = EngineGaps()
    assert not gaps.lacks(ENGINE, "/v1/messages", 0.0)
    gaps.note(ENGINE, "/v1/messages", 5.0)
    assert gaps.lacks(ENGINE, "/v1/messages", 5.0)
    assert not gaps.lacks(ENGINE, "/v1/responses", 5.0)
    assert not gaps.lacks(Address("10.0.0.2:8000"), "/v1/messages", 5.0)
    assert not gaps.lacks(ENGINE, "/v1/messages", 5.0 + REMEMBERED)


def test_no_more_is_remembered_than_a_fleet_has() -> None:
    gaps = EngineGaps()
    for number in range(KNOWN_MAX + 1):
        gaps.note(Address(f"10.0.0.1:{number}"), "/v1/messages", 0.0)
    assert gaps.lacks(Address(f"10.0.0.1:{KNOWN_MAX}"), "/v1/messages", 0.0)
    assert not gaps.lacks(Address("10.0.0.1:0"), "/v1/messages", 0.0)
