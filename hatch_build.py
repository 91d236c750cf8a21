"""Compiles the modules that pyproject.toml lists with mypyc, into a wheel of one platform: off unless asked for.

The sources are in the wheel beside what was made of them, and what is not on the list runs from them.
"""

import os
import shutil
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution
from setuptools.command.build_ext import build_ext


class NativeBuild(BuildHookInterface[Any]):
    """Adds to a wheel one shared library, and for each compiled module a small one that finds it there."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # what was compiled would hide the sources that are edited
        built = Path(self.root, "build", "native")
        shutil.rmtree(built, ignore_errors=True)  # what has left the list must not get in
        os.chdir(self.root)
        compile_modules([f"src/kinference/{path}" for path in self.config["modules"]], built)
        for library in built.joinpath("lib").rglob("*.so"):
            build_data["force_include"][str(library)] = str(library.relative_to(built / "lib"))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def compile_modules(files: list[str], built: Path) -> None:
    """All of them as one group, which call each other without the interpreter."""
    from mypyc.build import mypycify  # noqa: PLC0415 - it asks at its import whether setuptools is there

    extensions = mypycify(
        ["--config-file=pyproject.toml", *files],
        opt_level="2",
        debug_level="0",
        multi_file=True,  # as one file they take the C compiler many times as long
        group_name="kinference",
        target_dir=str(built / "c"),
    )
    command = build_ext(Distribution({"name": "kinference", "ext_modules": extensions}))
    command.build_lib, command.build_temp = str(built / "lib"), str(built / "objects")
    command.ensure_finalized()
    command.run()
