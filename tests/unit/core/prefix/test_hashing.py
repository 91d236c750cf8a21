"""Block hashing: a chain over one stream, whatever the elements."""

from kinference.core.prefix.hashing import BLOCK_BYTES, chain_seed, hash_prompt

TEXT = bytes(range(256)) * 8
SEED = chain_seed("m", "")


def test_only_full_blocks_are_hashed() -> None:
    assert [len(hash_prompt((TEXT[:size],), SEED).blocks) for size in (0, 511, 512, 1023, 1024)] == [0, 0, 1, 1, 2]


def test_a_turn_is_a_prefix_of_the_next_turn() -> None:
    turn = (TEXT[:700], TEXT[700:1500])
    following = (*turn, b"answer", TEXT)
    earlier, later = hash_prompt(turn, SEED).blocks, hash_prompt(following, SEED).blocks
    assert later[: len(earlier)] == earlier
    assert len(later) > len(earlier)


def test_where_an_element_ends_moves_no_block() -> None:
    cuts = ((TEXT,), (TEXT[:1], TEXT[1:]), (TEXT[:256], b"", TEXT[256:]), (TEXT[:300], TEXT[300:301], TEXT[301:]))
    assert len({tuple(hash_prompt(cut, SEED).blocks) for cut in cuts}) == 1


def test_a_difference_changes_every_block_from_there_on() -> None:
    other = TEXT[:600] + b"!" + TEXT[601:]
    ours, theirs = hash_prompt((TEXT,), SEED).blocks, hash_prompt((other,), SEED).blocks
    assert ours[0] == theirs[0]
    assert not set(ours[1:]) & set(theirs[1:])


def test_equal_blocks_at_different_depths_differ() -> None:
    blocks = hash_prompt((b"x" * BLOCK_BYTES * 10,), SEED).blocks
    assert len(set(blocks)) == 10


def test_models_and_salts_share_no_block() -> None:
    seeds = [chain_seed(*parts) for parts in (("m", ""), ("n", ""), ("m", "s"), ("ms", ""), ("", "ms"))]
    assert len(set(seeds)) == len(seeds)


def test_what_lies_beyond_the_cap_is_not_hashed_and_said_so() -> None:
    exact = hash_prompt((TEXT[:512], TEXT[:512]), SEED, bytes_max=1024)
    assert (len(exact.blocks), exact.truncated) == (2, False)
    over = hash_prompt((TEXT[:512], TEXT[:513], TEXT), SEED, bytes_max=1024)
    assert (over.blocks, over.truncated) == (exact.blocks, True)


def test_a_lone_surrogate_in_a_name_is_hashed_like_any_other() -> None:
    assert chain_seed("\ud800", "") != chain_seed("", "")
