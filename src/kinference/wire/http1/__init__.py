"""HTTP/1.1 on asyncio protocols; what bytes mean is for `requests`, `answers` and `replies`, which open no socket."""
