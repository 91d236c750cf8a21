import pytest

from kinference.shapes.answers import (
    Answer,
    ArgumentsPiece,
    Cited,
    Counted,
    Counts,
    Failed,
    Finish,
    Finished,
    NoAnswer,
    ReasoningEnd,
    ReasoningPiece,
    RefusalPiece,
    Shown,
    Started,
    TextPiece,
    ToolBegun,
)
from kinference.shapes.citations import Citation
from kinference.shapes.gather import gathered
from kinference.shapes.ir import Image, Media, Reasoning, Refusal, Sealed, Text, ToolCall, Unread
from kinference.shapes.way_back import pieces_of
from kinference.vocabulary import Api

MESSAGES = Api.ANTHROPIC_MESSAGES
CITATION = Citation("https://a.example", "A", 0, 2)
PICTURE = Image(Media("image/png", data="aGk="))
ANSWER = Answer(
    "a1",
    "m",
    (
        Reasoning("why", "sig", MESSAGES),
        Sealed("data", MESSAGES),
        Text("hi", logprobs=({"token": "hi"},)),
        PICTURE,
        ToolCall("c1", "f", '{"a":1}'),
        ToolCall("c2", "g", "ls", is_free_form=True, namespace="n"),
        Unread("other"),
        Refusal("no"),
    ),
    Finish.STOP_SEQUENCE,
    "END",
    Counts(7, 2, 1),
    (CITATION,),
)


def test_what_was_taken_apart_is_whole_again() -> None:
    assert gathered(pieces_of(ANSWER)) == ANSWER


def test_pieces_of_one_block_are_joined_and_interleaved_calls_kept_apart() -> None:
    pieces = (
        *(Started("a1", "m", Counts(prompt=3)), ReasoningPiece("a"), ReasoningPiece("b"), ReasoningEnd()),
        *(TextPiece("c"), TextPiece("d"), RefusalPiece("e"), RefusalPiece("f")),
        *(ToolBegun(0, "c1", "f"), ToolBegun(1, "c2", "g"), ArgumentsPiece(0, "{"), ArgumentsPiece(1, "{}")),
        *(ArgumentsPiece(0, "}"), ArgumentsPiece(9, "of none"), TextPiece("g"), Counted(Counts(completion=5))),
        Finished(Finish.TOOLS),
    )
    answer = gathered(pieces)
    assert answer.blocks == (
        *(Reasoning("ab"), Text("cd"), Refusal("ef"), ToolCall("c1", "f", "{}"), ToolCall("c2", "g", "{}")),
        Text("g"),
    )
    assert (answer.finish, answer.counts) == (Finish.TOOLS, Counts(3, 5))


def test_a_text_goes_on_after_what_it_rests_on_and_not_after_a_picture() -> None:
    answer = gathered((TextPiece("a"), Cited(CITATION), TextPiece("b"), Shown(PICTURE), TextPiece("c")))
    assert answer.blocks == (Text("ab"), PICTURE, Text("c"))


@pytest.mark.parametrize(("said", "told"), [("boom", "boom"), ("", "the destination gave up within its answer")])
def test_what_the_destination_gave_up_is_no_answer(said: str, told: str) -> None:
    with pytest.raises(NoAnswer, match=told):
        gathered((TextPiece("a"), Failed(said)))
