from kinference.wire.fields import header, table

TOLD = ((b"host", b"a"), (b"accept", b"x"), (b"accept", b"y"))


def test_a_field_is_its_first_value() -> None:
    assert header(TOLD, b"accept") == b"x"
    assert header(TOLD, b"cookie") is None


def test_a_table_says_what_looking_up_would() -> None:
    assert table(TOLD) == {name: header(TOLD, name) for name in (b"host", b"accept")}
