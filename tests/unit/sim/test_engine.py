import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from kinference.sim.engine import BODY_BYTES_MAX, Engine
from kinference.sim.faults import Fault, FaultKind
from kinference.sim.options import EngineOptions

Make = Callable[..., Engine]
Ask = Callable[..., Awaitable[Any]]

CHAT = "/v1/chat/completions"
HELLO = {"messages": [{"role": "user", "content": "hello"}]}


@pytest.mark.parametrize(("method", "path"), [("GET", "/health"), ("GET", "/ping"), ("POST", "/ping")])
async def test_a_healthy_engine_says_so_without_words(make_engine: Make, ask: Ask, method: str, path: str) -> None:
    answer = await ask(make_engine(), method, path)
    assert (answer.status, answer.raw) == (200, b"")


async def test_models_are_listed_as_vllm_lists_them(make_engine: Make, ask: Ask) -> None:
    answer = await ask(make_engine(), "GET", "/v1/models")
    first, second = answer.json["data"]
    assert (first["id"], second["id"]) == ("m", "alias")
    assert (second["root"], second["owned_by"], second["max_model_len"]) == ("m", "vllm", 131_072)


async def test_the_version_and_the_metrics_have_a_page_each(make_engine: Make, ask: Ask) -> None:
    engine = make_engine()
    assert "version" in (await ask(engine, "GET", "/version")).json
    page = await ask(engine, "GET", "/metrics")
    assert page.answer_headers[b"content-type"].startswith(b"text/plain")
    assert b'vllm:num_requests_running{engine="0",model_name="m"} 0.0' in page.raw


async def test_tokens_can_be_counted_beforehand(make_engine: Make, ask: Ask) -> None:
    engine = make_engine()
    tokens = (await ask(engine, "POST", "/tokenize", HELLO)).json
    assert tokens["count"] == len(tokens["tokens"])
    counted = await ask(engine, "POST", "/v1/messages/count_tokens", HELLO)
    served = await ask(engine, "POST", CHAT, HELLO)
    assert tokens["count"] == counted.json["input_tokens"] == served.json["usage"]["prompt_tokens"]


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nowhere", 404), ("GET", CHAT, 405), ("POST", "/metrics", 405)]
)
async def test_other_paths_and_methods_are_refused(
    make_engine: Make, ask: Ask, method: str, path: str, status: int
) -> None:
    assert (await ask(make_engine(), method, path)).status == status


async def test_errors_speak_the_dialect_of_their_path(make_engine: Make, ask: Ask) -> None:
    engine = make_engine()
    openai = await ask(engine, "POST", CHAT, b"{")
    anthropic = await ask(engine, "POST", "/v1/messages", b"{")
    assert (openai.status, openai.json["error"]["type"], openai.json["error"]["code"]) == (400, "BadRequestError", 400)
    assert (anthropic.json["type"], anthropic.json["error"]["type"]) == ("error", "BadRequestError")


async def test_a_body_has_a_largest_size(make_engine: Make, ask: Ask) -> None:
    assert (await ask(make_engine(), "POST", CHAT, bytes(BODY_BYTES_MAX + 1))).status == 413


async def test_a_reset_forgets_what_was_cached(make_engine: Make, ask: Ask) -> None:
    engine = make_engine()
    body = {"prompt": "x" * 400}
    await ask(engine, "POST", "/v1/completions", body)
    assert (await ask(engine, "POST", "/reset_prefix_cache")).status == 200
    answer = await ask(engine, "POST", "/v1/completions", body)
    assert answer.json["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


async def test_a_refused_connection_breaks_off_before_a_byte(make_engine: Make, ask: Ask) -> None:
    engine = make_engine()
    engine.add_fault(Fault(FaultKind.REFUSE))
    answer = await ask(engine, "POST", CHAT, HELLO)
    assert (answer.is_aborted, answer.status, answer.raw) == (True, 0, b"")


async def test_a_hung_engine_answers_nothing_until_the_client_leaves(make_engine: Make, ask: Ask) -> None:
    engine = make_engine()
    engine.add_fault(Fault(FaultKind.HANG, count=1))
    waiting = asyncio.ensure_future(ask(engine, "POST", CHAT, HELLO))
    await asyncio.sleep(0)
    await ask(engine, "POST", CHAT, HELLO)  # the one after it is served
    assert not waiting.done()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_an_error_answer_says_when_to_come_back(make_engine: Make, ask: Ask) -> None:
    engine = make_engine()
    engine.add_fault(Fault(FaultKind.STATUS, status=429, retry_after=2.0))
    answer = await ask(engine, "POST", CHAT, HELLO)
    assert (answer.status, answer.answer_headers[b"retry-after"]) == (429, b"2")
    assert answer.json["error"]["code"] == 429


async def test_a_cut_stream_breaks_off_after_so_many_events(make_engine: Make, ask: Ask) -> None:
    engine = make_engine()
    engine.add_fault(Fault(FaultKind.CUT, after_chunks=3))
    answer = await ask(engine, "POST", CHAT, {**HELLO, "stream": True})
    assert (len(answer.events), answer.is_aborted, answer.is_finished) == (3, True, False)
    assert engine.model.running == 0


async def test_a_cut_answer_is_half_of_what_was_promised(make_engine: Make, ask: Ask) -> None:
    engine = make_engine()
    engine.add_fault(Fault(FaultKind.CUT))
    answer = await ask(engine, "POST", CHAT, HELLO)
    assert len(answer.raw) == int(answer.answer_headers[b"content-length"]) // 2
    assert answer.is_aborted


async def test_a_slow_engine_is_slow_until_cleared(make_engine: Make) -> None:
    engine = make_engine(EngineOptions(models=("m",), fault=Fault(FaultKind.SLOW, factor=4)))
    assert engine.model.slowdown == 4
    engine.clear_faults()
    assert engine.model.slowdown == 1


async def test_faults_are_switched_over_http_even_while_all_else_fails(make_engine: Make, ask: Ask) -> None:
    engine = make_engine()
    fault = {"kind": "status", "status": 503, "scope": "all"}
    added = await ask(engine, "POST", "/sim/faults", fault)
    assert added.json["faults"][0]["kind"] == "status"
    assert (await ask(engine, "GET", "/health")).status == 503
    assert (await ask(engine, "GET", "/sim/faults")).json == added.json
    assert (await ask(engine, "DELETE", "/sim/faults")).json == {"faults": []}
    assert (await ask(engine, "GET", "/health")).status == 200


async def test_a_fault_that_makes_no_sense_is_a_bad_request(make_engine: Make, ask: Ask) -> None:
    answer = await ask(make_engine(), "POST", "/sim/faults", msgspec.json.encode({"kind": "burn"}))
    assert answer.status == 400
    assert "burn" in answer.json["error"]["message"]


async def test_a_client_that_vanishes_frees_its_blocks(make_engine: Make, ask: Ask) -> None:
    engine = make_engine(EngineOptions(models=("m",), speed=1.0))
    waiting = asyncio.ensure_future(ask(engine, "POST", CHAT, {**HELLO, "stream": True}))
    await asyncio.sleep(0)
    assert engine.model.running == 1
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert (engine.model.running, engine.model.kv_usage) == (0, 0)


async def test_what_was_answered_is_listed_with_the_engines_own_times(make_engine: Make, ask: Ask) -> None:
    engine = make_engine()
    assert (await ask(engine, "GET", "/sim/requests")).json == {"requests": []}
    served = await ask(engine, "POST", CHAT, HELLO)
    (lived,) = (await ask(engine, "GET", "/sim/requests")).json["requests"]
    assert lived["request"]["prompt_tokens"] == served.json["usage"]["prompt_tokens"]
    assert lived["submitted_at"] < lived["first_token_at"] <= lived["finished_at"]
