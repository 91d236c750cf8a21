"""How a base URL and an API's path are joined: bases end in `/v1` as often as not."""


def join_url(base_url: str, path: str) -> str:
    """The base without its last slash, then the path, which loses its `/v1` where the base has one already."""
    base = base_url.rstrip("/")
    under = "/" + base.partition("://")[2].partition("/")[2]
    versioned = under.startswith("/v1/") or under.endswith("/v1")
    if versioned and (path == "/v1" or path.startswith("/v1/")):
        return base + path.removeprefix("/v1")
    return base + path


def route_url(base_url: str, path: str, model_in_path: str | None, override: str | None) -> str:
    """As `join_url`, for routes that have the model in their path (`model_in_path`) or a path of their own."""
    base = base_url.rstrip("/")
    if model_in_path is not None:
        return f"{base}/{model_in_path}" + (path if override is None else override)
    if override is not None:
        return f"{base}{override}" if override.startswith("/") else f"{base}/{override}"
    return join_url(base_url, path)
