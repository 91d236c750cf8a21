"""Whatever the file holds, the loader returns a configuration or raises ConfigError; nothing else gets out."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kinference.config.decode import compose, line_of
from kinference.config.load import parse
from kinference.config.reference import written
from kinference.config.schema import Config
from kinference.errors import ConfigError

WORDS = st.sampled_from(
    [
        "listen", "limits", "pools", "backends", "models", "tenants", "gateway", "routing", "name", "endpoints", "url",
        "targets", "pool", "backend", "weight", "key", "api_key", "base_url", "path", "body_ttl", "seed", "parameters",
        "http://h:1", "127.0.0.1:1", "${A}", "file:/nowhere", "32MiB", "2m", "openai_chat", "a/b", "*", "",
    ]
)  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | WORDS
TREES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=5), inner, max_size=6),
    max_leaves=30,
)
MARKUP = st.text(alphabet=st.sampled_from("abc:-[]{}&*!|>'\"%@`#,?\n\t \\0~<=ué\u2028\x85"), max_size=60)


def assert_only_a_config_error_gets_out(text: str) -> None:
    try:
        told = repr(parse(text, {"A": "hunter2"}))
    except ConfigError as error:
        told = str(error)
    assert "hunter2" not in told
    told.encode()


@given(TREES)
def test_any_tree_is_a_configuration_or_a_config_error(tree: Any) -> None:
    assert_only_a_config_error_gets_out(yaml.safe_dump(tree, allow_unicode=True))


@given(MARKUP | st.text())
def test_any_text_is_a_configuration_or_a_config_error(text: str) -> None:
    assert_only_a_config_error_gets_out(text)


def drawn(node: yaml.Node | None) -> object:
    """All that the decoder reads of a node."""
    if isinstance(node, yaml.MappingNode):
        return line_of(node), node.tag, [(drawn(key), drawn(value)) for key, value in node.value]
    if isinstance(node, yaml.SequenceNode):
        return line_of(node), node.tag, [drawn(item) for item in node.value]
    return node and (line_of(node), node.tag, node.value)


@given(TREES, st.booleans())
def test_both_parsers_of_yaml_read_the_same(tree: Any, in_blocks: bool) -> None:
    text = yaml.safe_dump(tree, allow_unicode=True, default_flow_style=not in_blocks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml, "__with_libyaml__", False)
        slowly = drawn(compose(text))
    assert drawn(compose(text)) == slowly


@given(st.integers(1, 2**40), st.floats(0.001, 1e6), st.integers(0, 65535), st.none() | st.integers(-(10**17), 10**17))
def test_what_is_written_reads_back_the_same(size: int, seconds: float, port: int, seed: int | None) -> None:
    text = yaml.safe_dump(
        {
            "limits": {"body_max_bytes": size, "buffer_max_bytes": 2**40, "body_ttl": f"{seconds:.6f}"},
            "listen": {"admin": f"127.0.0.2:{port}"},
            "routing": {} if seed is None else {"seed": seed},
        }
    )
    config = parse(text)
    assert isinstance(config, Config)
    assert parse(yaml.safe_dump(written(config))) == config
