"""Which connection is used again, and which is not."""

from collections.abc import Callable

from kinference.wire.http1.pool import IDLE_MAX, Pool


class FakeLink:
    def __init__(self, origin: str = "http://a:1", *, is_open: bool = True) -> None:
        self.origin, self.is_open, self.idle = origin, is_open, 0.0
        self.gone: Callable[[FakeLink], object] = print

    def keep(self, idle: float, gone: "Callable[[FakeLink], object]") -> bool:
        self.idle, self.gone = idle, gone
        return self.is_open

    def close(self) -> None:
        self.is_open = False


def pool_of(*links: FakeLink) -> Pool:
    pool = Pool()
    for link in links:
        pool.give(link)  # type: ignore[arg-type] # all of a link that a pool uses
    return pool


def taken(pool: Pool, times: int, origin: str = "http://a:1") -> list[object]:
    return [pool.take(origin) for _ in range(times)]


def test_the_one_used_last_is_used_first_and_only_for_its_origin() -> None:
    first, second, other = FakeLink(), FakeLink(), FakeLink("http://b:1")
    pool = pool_of(first, second, other)
    assert len(pool) == 3
    assert taken(pool, 3) == [second, first, None]
    assert taken(pool, 1, "http://b:1") == [other]


def test_one_that_has_closed_meanwhile_is_passed_over() -> None:
    good, closed = FakeLink(), FakeLink()
    pool = pool_of(good, closed)
    closed.close()
    assert taken(pool, 1) == [good]


def test_h14_what_cannot_be_kept_is_not_and_what_is_kept_has_its_time() -> None:
    bad, good = FakeLink(is_open=False), FakeLink()
    assert len(pool_of(bad, good)) == 1
    assert good.idle == IDLE_MAX < 5


def test_closing_closes_what_is_idle() -> None:
    link = FakeLink()
    pool_of(link).close()
    assert not link.is_open


def test_what_has_ended_is_forgotten_also_of_origins_that_nobody_asks_again() -> None:
    links = [FakeLink(f"http://{number // 2}:1") for number in range(20)]
    pool = pool_of(*links)
    for link in links[1:]:
        link.gone(link)
    assert (len(pool), list(pool.origins)) == (1, ["http://0:1"])
    assert taken(pool, 2, "http://0:1") == [links[0], None]
    links[0].gone(links[0])
    assert list(pool.origins) == []
