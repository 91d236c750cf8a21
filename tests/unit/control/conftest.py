"""A control plane over a real SQLite file, with an outside that answers as a test says."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from kinference.control.catalogue import Catalogue
from kinference.control.credentials import Credentials
from kinference.control.registry import ProviderChange, Registry
from kinference.control.routes import RouteParts, Routes
from kinference.control.store.keys import KeySource
from kinference.control.store.sealing import Sealer
from kinference.control.store.sqlite import SqliteStore
from kinference.control.verify import Verifier
from kinference.errors import KinferenceError
from kinference.observe.metrics import Metrics
from tests.unit.control.fakes import Answer, Outside

KEY = "ab" * 32


@pytest.fixture
def environ() -> dict[str, str]:
    return {"KINFERENCE_SECRET_KEY": KEY}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "control.db")
    yield opened
    await opened.close()


@pytest.fixture
def catalogue(store: SqliteStore) -> Catalogue:
    return Catalogue(store)


@pytest.fixture
def credentials(environ: dict[str, str], tmp_path: Path) -> Credentials:
    return Credentials(Sealer(KeySource(environ, tmp_path / "secret.key").load), environ)


@pytest.fixture
def outside() -> Outside:
    return Outside()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def routes(catalogue: Catalogue, credentials: Credentials, outside: Outside, metrics: Metrics) -> Routes:
    return Routes(RouteParts(catalogue, credentials, Verifier(outside), metrics, frozenset({"team-a"})))


@pytest.fixture
def used_elsewhere() -> list[str]:
    return []


@pytest.fixture
def registry(catalogue: Catalogue, credentials: Credentials, used_elsewhere: list[str]) -> Registry:
    return Registry(catalogue, credentials, lambda _provider: used_elsewhere)


@pytest.fixture
def openai() -> ProviderChange:
    return ProviderChange(
        "openai", {"OPENAI_API_KEY": "sk-test-secret"}, config={"OPENAI_BASE_URL": "https://up.test/v1"}
    )


@pytest.fixture
def answering(outside: Outside) -> Callable[..., None]:
    def answering(*answers: Answer | KinferenceError) -> None:
        outside.answers = answers

    return answering
