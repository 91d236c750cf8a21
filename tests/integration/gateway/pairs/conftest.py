"""One gateway, and one of each client, for all the tests of a file."""

from collections.abc import Iterator, Mapping

import pytest

from kinference.vocabulary import Api
from tests.integration.gateway.pairs.clients import ChatClient, Client, CompletionsClient, ResponsesClient
from tests.integration.gateway.pairs.clients_others import GeminiClient, MessagesClient
from tests.integration.gateway.pairs.meaning import Said
from tests.integration.gateway.pairs.pair import Pair
from tests.integration.gateway.pairs.running import Running, running


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    with running() as gateway:
        yield gateway


@pytest.fixture(autouse=True)
def silent(gateway: Running) -> None:
    """Nothing is left of the test before."""
    gateway.providers.reply, gateway.providers.bytes_at_once = Said(), 1 << 20
    gateway.providers.requests.clear()


@pytest.fixture(scope="module")
def clients(gateway: Running) -> Iterator[Mapping[Api, Client]]:
    made = [
        kind(gateway.url) for kind in (ChatClient, ResponsesClient, CompletionsClient, MessagesClient, GeminiClient)
    ]
    yield {client.api: client for client in made}
    for client in made:
        client.sdk.close()


@pytest.fixture
def pair(gateway: Running, clients: Mapping[Api, Client], client: Api, destination: Api, streams: bool) -> Pair:
    return Pair(gateway, clients[client], destination, streams=streams)
