from kinference.shapes.answers import ArgumentsPiece, Counted, Counts, Finish, Finished, Piece, TextPiece, ToolBegun
from kinference.shapes.sequence import Sequencer

END = Finished(Finish.TOOLS)
A, B = ToolBegun(0, "a", "f"), ToolBegun(1, "b", "g")


def sequenced(*pieces: Piece) -> list[Piece]:
    sequencer = Sequencer()
    return [out for piece in pieces for out in sequencer.feed(piece)]


def args(call: int, text: str) -> ArgumentsPiece:
    return ArgumentsPiece(call, text)


def test_what_is_in_order_passes_at_once() -> None:
    pieces: list[Piece] = [TextPiece("x"), A, args(0, "{"), args(0, "}"), B, args(1, "{}"), TextPiece("y")]
    assert sequenced(*pieces) == pieces


def test_another_block_waits_until_the_open_call_is_whole() -> None:
    assert sequenced(A, args(0, '{"a"'), B, args(1, "{}"), TextPiece("y"), args(0, ":1}")) == [
        A,
        args(0, '{"a"'),
        args(0, ":1}"),
        B,
        args(1, "{}"),
        TextPiece("y"),
    ]


def test_counts_do_not_wait() -> None:
    assert sequenced(A, B, Counted(Counts(1))) == [A, Counted(Counts(1))]


def test_at_the_end_each_block_has_all_of_its_own() -> None:
    held = (A, args(0, "{"), B, TextPiece("y"), args(1, "{"), args(1, "}"))
    assert sequenced(*held, END) == [A, args(0, "{"), B, args(1, "{"), args(1, "}"), TextPiece("y"), END]


def test_what_comes_after_its_call_was_whole_is_left_out() -> None:
    assert sequenced(A, args(0, "{}"), TextPiece("x"), args(0, " "), END) == [A, args(0, "{}"), TextPiece("x"), END]


def test_arguments_that_look_whole_again_and_again_are_not_read_for_ever() -> None:
    """Each look reads all of them: a million closing braces would take days."""
    hostile = [args(0, "{" + "}" * 2) for _ in range(2_000)]
    assert sequenced(A, args(0, "{"), B, *hostile, args(1, "{}"), END)[-3:] == [B, args(1, "{}"), END]
