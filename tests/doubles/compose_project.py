"""A folder with a Compose project in it, driven through `compose_double.py`."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

DOUBLE = Path(__file__).resolve().parent / "compose_double.py"
BEFORE = {"api": "shop/api:0", "worker": "shop/worker:0"}


class Project:
    """What the test sets up and looks at: two services with two containers each, running."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file, self.override = folder, folder / "state.json", folder / "compose.rollout.json"
        (folder / "compose.yaml").write_text(json.dumps({"services": {name: {"image": image} for name, image in BEFORE.items()}}))
        self.set(containers=[{"Service": name, "Image": image, "State": "running", "Health": ""} for name, image in BEFORE.items()
                             for _ in range(2)], ups=[], next="well")

    def section(self, **more: Any) -> dict[str, Any]:
        """`[deploy.compose]` for it."""
        return {
            "files": ["compose.yaml"], "folder": str(self.folder), "project": "shop",
            "program": shlex.join([sys.executable, "-I", "-S", str(DOUBLE), str(self.file)]),
            "service": [{"name": "api", "images": {"v1": "shop/api:1"}}, {"name": "worker", "images": {"v1": "shop/worker:1"}}], **more}

    @property
    def state(self) -> dict[str, Any]:
        found = json.loads(self.file.read_text())
        assert isinstance(found, dict)
        return found

    def set(self, **what: Any) -> None:
        self.file.write_text(json.dumps({**(self.state if self.file.exists() else {}), **what}))

    def images(self) -> dict[str, str]:
        return {container["Service"]: container["Image"] for container in self.state["containers"]}
