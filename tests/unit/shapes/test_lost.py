from kinference.shapes.lost import Lost, header, more, noted, safe


def test_losses_in_one_line() -> None:
    assert header((Lost("dropped", "seed"), Lost("clamped", "temperature", "1.5->1.0"))) == (
        "dropped=seed;clamped=temperature:1.5->1.0"
    )
    assert header(()) == ""


def test_the_line_is_ascii_of_bounded_length() -> None:
    line = header(tuple(Lost("dropped", "é" * 9) for _ in range(999)))
    assert line.isascii()
    assert len(line) == 1024


def test_what_the_answer_loses_follows_what_the_request_lost() -> None:
    lost = Lost("dropped", "answer.image")
    assert more("dropped=seed", (lost,)) == "dropped=seed;dropped=answer.image"
    assert (more("", (lost,)), more("dropped=seed", ())) == ("dropped=answer.image", "dropped=seed")
    assert len(more("x" * 1020, (lost,))) == 1024
    assert noted(str(lost)) == "x-kinference-warnings: dropped=answer.image"


def test_a_name_of_the_clients_cannot_break_the_line() -> None:
    assert safe("a;b=c\r\nd\x00é" + "x" * 99) == "a_b_c__d_?" + "x" * 54
