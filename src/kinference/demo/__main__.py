"""The demonstration's client process: `python -m kinference.demo --base-url URL --model M`."""

import argparse
import asyncio
import os
from random import Random

import msgspec
from openai import AsyncOpenAI

from kinference.demo.conversations import Workload, conversations
from kinference.demo.traffic import Driver


def arguments() -> argparse.ArgumentParser:
    """The process's own flags."""
    parser = argparse.ArgumentParser(prog="python -m kinference.demo", description=__doc__)
    parser.add_argument("--base-url", required=True, help="the gateway's, with /v1")
    parser.add_argument("--model", required=True)
    parser.add_argument("--speed", type=float, default=1.0, help="how many simulated seconds go into one real second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workload", default="{}", help="JSON of conversations.Workload; absent fields keep defaults")
    return parser


async def drive(args: argparse.Namespace) -> None:
    """Make the conversations and hold them all."""
    workload = msgspec.json.decode(args.workload, type=Workload)
    async with AsyncOpenAI(base_url=args.base_url, api_key="not-needed", max_retries=0, timeout=120) as client:
        await Driver(client, args.model, workload, args.speed).run(conversations(workload, Random(args.seed)))


if __name__ == "__main__":
    try:
        asyncio.run(drive(arguments().parse_args()))
    except* BrokenPipeError:
        os._exit(1)  # whoever read the answers is gone: there is nobody to tell, and no stdout left to flush
