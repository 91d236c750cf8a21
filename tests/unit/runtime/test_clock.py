from kinference.runtime.clock import SystemClock


def test_monotonic_time_never_goes_back() -> None:
    clock = SystemClock()
    times = [clock.now() for _ in range(100)]
    assert times == sorted(times)


def test_wall_time_is_since_the_epoch() -> None:
    assert SystemClock().wall() > 1_700_000_000
