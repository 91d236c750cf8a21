from kinference.core.fleet import EndpointSpec, Fleet
from kinference.ids import Address, ObjectRef
from kinference.observe.metrics import CIRCUIT_OPEN, KV_GAPS, LABEL_VALUES_MAX, Metrics
from kinference.runtime.departed import SHOWN_FOR, Departed

POOL = ObjectRef("default", "p")


def place(number: int) -> Address:
    return Address(f"10.0.{number // 250}.{number % 250}:80")


def follow(fleet: Fleet, *numbers: int) -> None:
    fleet.set_pool(POOL, [EndpointSpec(POOL, place(number)) for number in numbers])


def test_who_has_left_is_shown_for_a_while_and_then_no_more() -> None:
    fleet, metrics = Fleet(), Metrics()
    departed = Departed(fleet)
    follow(fleet, 1, 2)
    for number in (1, 2):
        metrics.count(KV_GAPS, place(number))
    metrics.mark(CIRCUIT_OPEN, [f"default/p/{place(1)}", "backend default/b"])
    departed.publish(metrics, 0.0)
    follow(fleet, 2)
    departed.publish(metrics, 10.0)
    departed.publish(metrics, 9.0 + SHOWN_FOR)
    assert place(1) in metrics.exposition().decode()
    departed.publish(metrics, 10.0 + SHOWN_FOR)
    page = metrics.exposition().decode()
    assert place(1) not in page
    assert place(2) in page
    assert "backend default/b" in page


def test_who_is_back_in_time_is_not_forgotten() -> None:
    fleet, metrics = Fleet(), Metrics()
    departed = Departed(fleet)
    follow(fleet, 1)
    metrics.count(KV_GAPS, place(1))
    departed.publish(metrics, 0.0)
    follow(fleet)
    departed.publish(metrics, 1.0)
    follow(fleet, 1)
    departed.publish(metrics, 2.0)
    departed.publish(metrics, 2.0 + 2 * SHOWN_FOR)
    assert place(1) in metrics.exposition().decode()


def test_however_many_come_and_go_each_has_its_own_name() -> None:
    fleet, metrics = Fleet(), Metrics()
    departed = Departed(fleet)
    for number in range(3 * LABEL_VALUES_MAX):
        follow(fleet, number)
        metrics.count(KV_GAPS, place(number))
        departed.publish(metrics, number * SHOWN_FOR)
    page = metrics.exposition().decode()
    assert f'kinference_kv_gaps_total{{endpoint="{place(number)}"}} 1.0' in page
    assert 'endpoint="other"' not in page
