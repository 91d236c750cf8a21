"""From a file, or from nothing but engine URLs, to a configuration that holds together."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from kinference.config.checks import ADVICE, CHECKS, run
from kinference.config.decode import BROKEN, Decoder, compose
from kinference.config.destinations import Endpoint, Pool
from kinference.config.env import overrides, secret_reader, unknown_variables
from kinference.config.problems import InvalidConfig
from kinference.config.scalars import scalars
from kinference.config.schema import Config
from kinference.config.values import Name, Url
from kinference.errors import ConfigError

FILE_BYTES_MAX = 2**20
NO_ENVIRONMENT: Mapping[str, str] = MappingProxyType({})


def load(path: Path | None, environ: Mapping[str, str] = NO_ENVIRONMENT) -> Config:
    """The file's configuration with the environment's overrides; without a file, the defaults with them.

    Raises InvalidConfig with every problem found.
    """
    if path is None:
        return _finished(Config(), environ, Decoder(scalars(secret_reader(environ))))
    return parse(_text_of(path), environ)


def from_engines(urls: Iterable[str], environ: Mapping[str, str] = NO_ENVIRONMENT) -> Config:
    """One pool called `default` of these engines, everything else as without a file."""
    decoder = Decoder(scalars(secret_reader(environ)))
    endpoints = tuple(
        Endpoint(url)
        for place, text in enumerate(urls)
        if (url := decoder.read(Url, text, f"--engine[{place}]")) is not BROKEN
    )
    try:
        return _finished(Config(pools=(Pool(Name("default"), endpoints),)), environ, decoder)
    except InvalidConfig as error:
        raise InvalidConfig([_by_flag(problem) for problem in error.problems]) from None


def parse(text: str, environ: Mapping[str, str] = NO_ENVIRONMENT) -> Config:
    """As `load`, from the text of a file."""
    decoder = Decoder(scalars(secret_reader(environ)))
    node = compose(text)
    if node is None:  # as a file is for a moment that is being written anew
        raise InvalidConfig(
            [ConfigError("the file", "is empty", "write {} for a configuration of nothing but defaults")]
        )
    return _finished(decoder.decode(Config, node, ""), environ, decoder)


def advice(config: Config, environ: Mapping[str, str]) -> list[str]:
    """What is allowed and probably not meant; for the log and for `config check`."""
    told = [str(problem) for problem in run(ADVICE, config)]
    return told + list(unknown_variables(environ, scalars(secret_reader(environ))))


def _by_flag(problem: ConfigError) -> ConfigError:
    """The same of an endpoint by the flag that named it: there is no file in which to look up `pools`."""
    path = problem.path.replace("pools[0].endpoints", "--engine", 1)
    return ConfigError(path, problem.problem, problem.fix, problem.line)


def _finished(config: Config, environ: Mapping[str, str], decoder: Decoder) -> Config:
    changes = overrides(environ, scalars(secret_reader(environ)), decoder)
    if decoder.problems:
        raise InvalidConfig(decoder.problems)
    for change in changes:
        config = change(config)
    if problems := run(CHECKS, config):
        raise InvalidConfig([_with_line(problem, decoder.lines) for problem in problems])
    return config


def _with_line(problem: ConfigError, lines: Mapping[str, int]) -> ConfigError:
    line = lines.get(problem.path)
    return ConfigError(problem.path, problem.problem, problem.fix, line)


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        fix = "check the path and its permissions"
        raise InvalidConfig([ConfigError(str(path), f"cannot be read: {error.strerror}", fix)]) from None
    if len(content) > FILE_BYTES_MAX:
        raise InvalidConfig([ConfigError(str(path), f"over {FILE_BYTES_MAX} bytes", "no configuration is that long")])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidConfig([ConfigError(str(path), "not UTF-8", "save it as UTF-8", line)]) from None
