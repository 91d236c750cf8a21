from kinference.conformance.clauses import CLAUSES


def test_each_clause_is_one_line_that_ends() -> None:
    for number, clause in CLAUSES.items():
        assert clause.number == number
        assert len(clause.text) <= 110, number
        assert clause.text.endswith("."), number
        assert "\n" not in clause.text


def test_clauses_of_one_letter_are_numbered_without_a_gap() -> None:
    letters = {number[0] for number in CLAUSES}
    for letter in letters:
        numbers = [int(number[1:]) for number in CLAUSES if number[0] == letter]
        assert numbers == list(range(1, len(numbers) + 1))
