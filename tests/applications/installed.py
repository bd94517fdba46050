"""Node packages and generated Prisma clients, in the cache folder; made on first use, without Prisma's downloaded engines."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from deploy.mysql_server.cache import kept
from tests.applications.schema import HEAD, schemas

HERE = Path(__file__).resolve().parent
GENERATOR = HERE / "datamodel.mjs"
READER = 'generator datamodel {\n  provider = "node ./datamodel.mjs"\n  output = "./datamodel.json"\n}'
LIMIT_S = 300
QUIET = {"CHECKPOINT_DISABLE": "1", "PRISMA_HIDE_UPDATE_MESSAGE": "1", "npm_config_update_notifier": "false"}


class NotInstalledError(RuntimeError):
    """Node or npm is missing, or refused: the tests with real Prisma clients cannot run, and fail."""


def modules() -> Path:
    """Return the folder whose `node_modules` holds what package-lock.json pins. Safe to repeat, by several processes at once."""
    manifests = [HERE / "package.json", HERE / "package-lock.json"]

    def install(folder: Path) -> None:
        for file in manifests:
            shutil.copy(file, folder)
        _run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", folder=folder)

    return kept(f"node-modules-{_digest(*(file.read_text(encoding='utf-8') for file in manifests))}", install)


def clients() -> Path:
    """Return the folder that holds `client_v0`, `client_v1`, `client_v2` and `node_modules`. Safe to repeat."""
    installed, texts = modules(), schemas()

    def generate(folder: Path) -> None:
        (folder / "node_modules").symlink_to(installed / "node_modules")
        for name, text in texts.items():
            file = folder / f"{name}.prisma"
            file.write_text(text, encoding="utf-8")
            # Prisma would download its schema engine, which generating a client with engineType "client" never calls.
            _run("node", "node_modules/prisma/build/index.js", "generate", "--no-hints", "--schema", str(file), folder=folder,
                 PRISMA_SCHEMA_ENGINE_BINARY=shutil.which("true") or "/bin/true")

    return kept(f"prisma-clients-{_digest(installed.name, *texts.values())}", generate)


def datamodel(model: str, relation: str) -> dict[str, Any]:
    """
    Return what Prisma's own parser makes of *model*, with User's side *relation*: its models and indexes. Safe to repeat.

    Fields with `@ignore` are among them, as they are for Prisma's migrations; generators are not told of them otherwise.

    Raises:
        NotInstalledError: Prisma refuses the schema; says why.
    """
    installed = modules()
    text = (HEAD.format(generation="none", relation=relation) + model).replace(" @ignore", "")
    text = re.sub(r"generator client \{.*?\}", READER, text, count=1, flags=re.DOTALL)

    def generate(folder: Path) -> None:
        (folder / "node_modules").symlink_to(installed / "node_modules")
        shutil.copy(GENERATOR, folder)
        (folder / "schema.prisma").write_text(text, encoding="utf-8")
        _run("node", "node_modules/prisma/build/index.js", "generate", "--no-hints", "--schema", "schema.prisma", folder=folder,
             PRISMA_SCHEMA_ENGINE_BINARY=shutil.which("true") or "/bin/true")

    made = kept(f"prisma-datamodel-{_digest(installed.name, GENERATOR.read_text(encoding='utf-8'), text)}", generate)
    found = json.loads((made / "datamodel.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def _run(program: str, *arguments: str, folder: Path, **environment: str) -> None:
    found = shutil.which(program)
    if not found:
        raise NotInstalledError(f"{program} is not on the PATH; the applications need Node 20 or newer, and npm (Debian: nodejs, npm)")
    done = subprocess.run([found, *arguments], cwd=folder, env={**os.environ, **QUIET, **environment}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode:
        raise NotInstalledError(f"{program} {arguments[0]} ended with {done.returncode}: {(done.stdout + done.stderr)[-800:]}")


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]
