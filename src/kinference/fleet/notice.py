"""Tells the log about a lasting condition when it begins, changes or ends, and not each time it is seen."""

import logging

from kinference.core.fleet import EndpointSpec

_log = logging.getLogger(__name__)


class Notice:
    """One aspect of one endpoint, and what was last said of it."""

    def __init__(self, spec: EndpointSpec) -> None:
        self._subject = f"endpoint {spec.address} of pool {spec.pool}"
        self._said = ""

    def problem(self, text: str) -> None:
        """Something is wrong: a warning, once."""
        self._say(logging.WARNING, text)

    def fine(self, text: str) -> None:
        """All is well: worth a line when it was not so before."""
        self._say(logging.INFO, text)

    def _say(self, level: int, text: str) -> None:
        if text != self._said:
            self._said = text
            _log.log(level, "%s %s", self._subject, text)
