"""Every official client, served by providers of every API through one running gateway, in one piece and in streams.

The providers are stand-ins (`provider`): they refuse what the real ones would, and so every test here also says that
nothing is sent that a provider would answer 400 to.
"""

import base64

import pytest

from tests.integration.gateway.pairs.meaning import (
    Asked,
    Before,
    Ending,
    Picture,
    Replayed,
    Result,
    Results,
    Said,
    Tokens,
    Turn,
    User,
)
from tests.integration.gateway.pairs.pair import (
    CHAT,
    COMPLETIONS,
    GEMINI,
    OSLO,
    PNG,
    ROME,
    STANDARD,
    TALKING,
    WEATHER,
    WORDS,
    Pair,
    both_ways,
    every_client,
    every_destination,
)
from tests.integration.gateway.pairs.running import THINKING


@both_ways
@every_destination
@pytest.mark.parametrize("client", [*TALKING, COMPLETIONS], ids=lambda api: api.value)
def test_a_question_is_answered(pair: Pair) -> None:
    got = pair.ask(Asked(), Said("It is warm in Rome."))
    assert (got.text, got.thought, got.calls) == ("It is warm in Rome.", "", ())
    assert got.ending == WORDS[pair.client.api]["stop"]
    assert got.tokens == Tokens()
    assert got.warnings == ""


@both_ways
@every_destination
@every_client
def test_a_conversation_goes_on(pair: Pair) -> None:
    turns: list[Turn] = [User("Where is it warm?"), Before("In Rome."), User("Where else?")]
    got = pair.ask(Asked(turns, system="Be brief."), Said("Cairo."))
    assert got.text == "Cairo."
    assert got.warnings == ""
    told = str(pair.sent())
    assert told.count("Be brief.") == told.count("In Rome.") == told.count("Where else?") == 1


@both_ways
@every_destination
@every_client
def test_tools_are_called_beside_each_other_and_answered(pair: Pair) -> None:
    first = Asked(tools=(WEATHER,))
    got = pair.ask(first, Said("Let me see.", calls=(ROME, OSLO), ending="tools"))
    assert got.text == "Let me see."
    assert [(call.name, call.arguments) for call in got.calls] == [(one.name, one.arguments) for one in (ROME, OSLO)]
    assert len({call.id for call in got.calls}) == 2 or not pair.is_translated  # Gemini gives none
    assert got.ending == WORDS[pair.client.api]["tools"]
    assert got.warnings == ""
    results = Results(tuple(Result(call, f"{at} degrees") for at, call in enumerate(got.calls)))
    second = Asked([*first.turns, Replayed(got.form), results], tools=(WEATHER,))
    again = pair.ask(second, Said("It is warm in Rome."))
    assert again.text == "It is warm in Rome."
    told = str(pair.sent())
    assert told.count("0 degrees") == told.count("1 degrees") == 1
    assert "9007199254740993" in told


@both_ways
@every_destination
@every_client
def test_a_call_without_text_is_told_alone(pair: Pair) -> None:
    got = pair.ask(Asked(tools=(WEATHER,)), Said(calls=(ROME,), ending="tools"))
    assert (got.text, len(got.calls)) == ("", 1)
    assert got.ending == WORDS[pair.client.api]["tools"]
    if pair.client.api is CHAT:
        assert got.form["content"] is None


@both_ways
@every_destination
@every_client
def test_a_picture_is_shown(pair: Pair) -> None:
    got = pair.ask(Asked([User("What is this?", (Picture(data=PNG),))]), Said("A dot."))
    assert (got.text, got.warnings) == ("A dot.", "")
    assert PNG in str(pair.sent()).translate(STANDARD)


@both_ways
@every_destination
@every_client
@pytest.mark.parametrize("ending", ["length", "refused"])
def test_an_answer_ends_as_the_client_calls_it(pair: Pair, ending: Ending) -> None:
    got = pair.ask(Asked(), Said("It is war", ending=ending))
    assert got.text == "It is war"
    assert got.ending == WORDS[pair.client.api][ending]


@both_ways
@every_destination
@every_client
def test_a_thought_is_shown_and_goes_back_to_its_issuer(pair: Pair) -> None:
    issuer = "gemini" if pair.shape is GEMINI else "anthropic"
    signature = f"{issuer}-c2lnbmVk"
    asked = Asked(tools=(WEATHER,), thinks=True, max_tokens=8000)
    said = Said("Let me see.", "Rome is warm.", signature, (ROME, OSLO), "tools", tokens=Tokens(reasoning=4))
    got = pair.ask(asked, said, THINKING)
    assert (got.text, got.thought) == ("Let me see.", "Rome is warm.")
    results = Results(tuple(Result(call, "20 degrees") for call in got.calls))
    pair.ask(Asked([*asked.turns, Replayed(got.form), results], tools=(WEATHER,), thinks=True), Said("Rome."), THINKING)
    sent = str(pair.sent())
    assert signature in sent or _in_base64(signature) in sent or pair.shape is CHAT


def _in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
