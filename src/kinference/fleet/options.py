"""How often and how patiently the fleet is watched, and how much an engine may make us read."""

from dataclasses import dataclass

from kinference.ids import Seconds


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """The watcher's pace and limits."""

    probe_pause_min: Seconds = 1.0
    probe_pause_max: Seconds = 2.0
    probe_timeout: Seconds = 2.0
    probes_per_second_max: int = 200
    """Over the whole fleet, as with scrapes: an endpoint that fails its requests is left alone without a probe."""
    first_probes_at_once: int = 64
    first_probes_per_second_max: int = 1000
    """Of endpoints that come together: thousands asked at once would hold up whatever else is under way."""
    failures_max: int = 2
    """Failed probes in a row that make a ready endpoint unready."""
    models_interval: Seconds = 10.0
    scrape_interval: Seconds = 0.2
    scrape_timeout: Seconds = 2.0
    scrape_pause_failing: Seconds = 2.0
    """Between scrapes of an engine whose metrics cannot be read."""
    scrapes_per_second_max: int = 80
    """Over the whole fleet: a larger one is scraped less often, so that watching it stays cheap."""
    page_bytes_max: int = 1024 * 1024

    def probe_pause_least(self, endpoints: int) -> Seconds:
        """Between two probes of one endpoint, in a fleet of so many."""
        return endpoints / self.probes_per_second_max

    def first_probe_after(self, place: int) -> Seconds:
        """How long the first probe waits, of the endpoint at this place (from 0) among those that come together."""
        batch = self.first_probes_at_once
        return place // batch * batch / self.first_probes_per_second_max

    def scrape_pause(self, endpoints: int, is_failing: bool) -> Seconds:
        """Between two scrapes of one endpoint, in a fleet of so many."""
        pause = max(self.scrape_interval, endpoints / self.scrapes_per_second_max)
        return max(pause, self.scrape_pause_failing) if is_failing else pause
