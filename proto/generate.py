"""Writes the Python messages and their type stubs of the contracts: `python proto/generate.py FOLDER`."""

import sys
from importlib.resources import files
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

from grpc_tools import protoc

ROOT = Path(__file__).parent
CONTRACTS = ("kinference/v1/picker", "openshell/inference/v1/inference", "kinference/control/v1/control")


def generate(folder: Path) -> None:
    """Write `<name>_pb2.py` and `<name>_pb2.pyi` of each contract into `folder`, all side by side.

    Packages named after the contracts would collide with our own `kinference`, and neither contract imports another.
    """
    plugin = Path(sys.executable).with_name("protoc-gen-mypy")
    well_known = str(files("grpc_tools") / "_proto")
    with TemporaryDirectory() as scratch:
        status = protoc.main(
            [
                "protoc",
                f"--proto_path={ROOT}",
                f"--proto_path={well_known}",
                f"--plugin=protoc-gen-mypy={plugin}",
                f"--python_out={scratch}",
                f"--mypy_out=quiet:{scratch}",
                *(f"{contract}.proto" for contract in CONTRACTS),
            ]
        )
        if status != 0:
            raise SystemExit(status)
        for contract in CONTRACTS:
            for suffix in ("_pb2.py", "_pb2.pyi"):
                copyfile(f"{scratch}/{contract}{suffix}", folder / f"{Path(contract).name}{suffix}")


if __name__ == "__main__":
    generate(Path(sys.argv[1]))
