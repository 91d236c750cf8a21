import pytest

from kinference.shapes.concepts import Concept, Fields, Treatment
from kinference.shapes.extras import extras
from kinference.shapes.lost import Untranslatable
from kinference.shapes.translate import CLIENTS
from kinference.vocabulary import Api

FIELDS: Fields = {
    "": {
        "kept": Treatment.KEPT,
        "seed": Concept.SEED,
        "gone": Treatment.DROPPED,
        "ours": Treatment.IGNORED,
        "never": Treatment.REFUSED,
    },
    "inner": {"gone": Treatment.DROPPED},
}


def test_what_is_dropped_and_what_nobody_knows_is_told() -> None:
    body = {"kept": 1, "seed": 1, "gone": 1, "ours": 1, "un;known=1": 1}
    assert list(extras(body, FIELDS, "", {})) == ["gone", "un_known_1"]
    assert list(extras({"gone": 1}, FIELDS, "inner", {})) == ["inner.gone"]


@pytest.mark.parametrize("value", [None, False, "", [], {}, 1])
def test_what_asks_for_nothing_is_no_loss(value: object) -> None:
    body = {"gone": value, "unknown": value} | ({} if value == {} else {"never": value})
    assert list(extras(body, FIELDS, "", {"gone": 1, "never": 1, "unknown": 1})) == []


def test_what_would_change_the_meaning_is_refused() -> None:
    with pytest.raises(Untranslatable, match="never"):
        list(extras({"never": 2}, FIELDS, "", {}))
    with pytest.raises(Untranslatable, match="never"):
        list(extras({"never": {}}, FIELDS, "", {}))  # as a search is asked for


@pytest.mark.parametrize("api", CLIENTS)
def test_what_is_left_out_and_told_stands_where_it_is_looked_for(api: Api) -> None:
    looked_at = {"", "generationConfig", "output_config", "web_search", "googleSearch", "image_generation"}
    looked_at |= {"code_interpreter.container"}
    told = {kind for kind, members in CLIENTS[api].fields.items() if Treatment.DROPPED in members.values()}
    assert told <= looked_at
