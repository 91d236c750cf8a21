"""The whole table."""

from collections.abc import Sequence

from tests.conformance.http2.case import Case
from tests.conformance.http2.cases_connection import CASES as CONNECTION
from tests.conformance.http2.cases_floods import CASES as FLOODS
from tests.conformance.http2.cases_flow import CASES as FLOW
from tests.conformance.http2.cases_hpack import CASES as HPACK
from tests.conformance.http2.cases_messages import CASES as MESSAGES
from tests.conformance.http2.cases_streams import CASES as STREAMS

CASES: Sequence[Case] = (*CONNECTION, *STREAMS, *FLOW, *MESSAGES, *HPACK, *FLOODS)
