from kinference.picker.id_source import IdSource
from kinference.picker.numbering import draw_id


def test_ids_come_by_the_batch_and_each_once() -> None:
    source = IdSource()
    drawn = [draw_id(source) for _ in range(1000)]
    assert len(set(drawn)) == 1000
    assert all(0 < number < 2**64 for number in drawn)
    assert max(drawn).bit_length() > 60
    assert source.getrandbits(8) < 256
