from dataclasses import dataclass
from random import Random

from kinference.core.choose import Cheapest
from kinference.core.cost import Case
from kinference.core.scoring import Draw, Scoring, weigh
from kinference.vocabulary import QosClass
from tests.unit.core.test_choose import case


@dataclass(frozen=True, slots=True)
class Fixed:
    values: tuple[float, ...]
    name: str = "fixed"

    def column(self, case: Case) -> list[float]:
        return list(self.values)


SCORING = Scoring((Fixed((3.0, 1.0, 2.0)),), (Fixed((1.0, 2.0, 3.0)),), Cheapest())


def draw(qos: QosClass = QosClass.INTERACTIVE, *extra: tuple[str, list[float]], scoring: Scoring = SCORING) -> Draw:
    return Draw("p", scoring, qos, extra, Random(1))


def test_terms_are_added_up_and_the_chooser_chooses() -> None:
    weighed = weigh(case((1, 1, 1)), draw(QosClass.INTERACTIVE, ("price", [0.0, 5.0, 0.5])))
    assert weighed.columns == [("fixed", [3.0, 1.0, 2.0]), ("price", [0.0, 5.0, 0.5])]
    assert (weighed.policy, weighed.totals, weighed.chosen) == ("p", [3.0, 6.0, 2.5], 2)


def test_batch_work_is_weighed_by_its_own_terms() -> None:
    assert weigh(case((1, 1, 1)), draw()).chosen == 1
    for qos in (QosClass.BATCH, QosClass.DEFERRABLE):
        assert weigh(case((1, 1, 1)), draw(qos)).chosen == 0


def test_a_policy_without_terms_leaves_it_to_the_chooser() -> None:
    weighed = weigh(case((1, 1, 1)), draw(scoring=Scoring((), (), Cheapest())))
    assert (weighed.columns, weighed.totals) == ([], [0.0, 0.0, 0.0])
