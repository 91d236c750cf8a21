"""The decision core, pure: told the time, given its randomness, and never waiting.

No method awaits, so under asyncio each call is atomic; that is the whole concurrency model, and why there is no lock.
"""
