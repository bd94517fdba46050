"""
The automations of `deploy/automations/` on the configured Prefect server.

The files name blocks as TYPE/NAME, and no address is ever in them: the server's ids of those blocks are put in here. A notification whose
block is not there is left out, and said so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import yaml

from flows import cockpit
from steps import masking
from steps.errors import Refused

cockpit.prepare(quiet=True)

from prefect.blocks.webhook import Webhook  # noqa: E402  # only after the settings above
from prefect.client.orchestration import SyncPrefectClient  # noqa: E402
from prefect.events.schemas.automations import AutomationCore  # noqa: E402
from prefect.exceptions import ObjectNotFound  # noqa: E402

FOLDER = Path(__file__).resolve().parent.parent / "deploy" / "automations"
ADDRESSES = {"rollout-slack": "ROLLOUT_SLACK_URL", "rollout-webhook": "ROLLOUT_WEBHOOK_URL"}
BLOCK = "block_document_id"


@dataclass
class Installed:
    """What was made, what was brought up to date, and which notifications had no block."""

    made: list[str] = field(default_factory=list)
    renewed: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)


def blocks_made(environment: Mapping[str, str]) -> list[str]:
    """Make or renew the block of each address that *environment* holds; the server encrypts it. Safe to repeat."""
    made = []
    for name, variable in ADDRESSES.items():
        address = environment.get(variable)
        if address:
            masking.remember(address)
            block = Webhook.model_validate({"url": address, "headers": {"Content-Type": "application/json"}})
            block.save(name, overwrite=True)
            made.append(name)
    return made


def files(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Each file's automation, by its stem."""
    return {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.yaml"))}


def resolved(client: SyncPrefectClient, wanted: dict[str, Any], found: dict[str, UUID | None]) -> tuple[dict[str, Any], list[str]]:
    """*wanted* with the ids of its blocks, and the names of those that the server does not have; *found* remembers what was looked up."""
    actions, without = [], []
    for action in wanted["actions"]:
        name = action.get(BLOCK)
        if name is None:
            actions.append(action)
            continue
        if name not in found:
            found[name] = _id_of(client, name)
        if found[name] is None:
            without.append(name)
        else:
            actions.append({**action, BLOCK: str(found[name])})
    return {**wanted, "actions": actions}, without


def _id_of(client: SyncPrefectClient, name: str) -> UUID | None:
    kind, _, block = name.partition("/")
    try:
        return UUID(str(client.read_block_document_by_name(block, kind).id))
    except ObjectNotFound:
        return None


def ready(client: SyncPrefectClient, within_s: int | None = None) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """
    What may be installed, by stem, and the blocks that are missing. *within_s* is how long a run may be silent before it counts as dead.

    Raises:
        Refused: there is no block at all, so nobody would be told anything.
    """
    found: dict[str, UUID | None] = {}
    documents: dict[str, dict[str, Any]] = {}
    for stem, wanted in files().items():
        document, _ = resolved(client, wanted, found)
        if within_s and document["trigger"]["posture"] == "Proactive":
            document["trigger"] = {**document["trigger"], "within": within_s}
        if document["actions"]:
            documents[stem] = document
    missing = [name for name, block in found.items() if block is None]
    if len(missing) == len(found):
        raise Refused("notifications", f"the server has none of the blocks {', '.join(found)}", f"set {' or '.join(ADDRESSES.values())} "
                      "and call this again, or make a Webhook block of that name in the UI; nothing was installed")
    return documents, missing


def install(client: SyncPrefectClient, within_s: int | None = None) -> Installed:
    """Make each automation, or bring the one of its name up to date; one that a person has switched off stays off."""
    documents, without = ready(client, within_s)
    done = Installed(without=without)
    for document in documents.values():
        wanted = AutomationCore.model_validate(document)
        known = client.read_automations_by_name(wanted.name)
        if known:
            client.update_automation(known[0].id, wanted.model_copy(update={"enabled": known[0].enabled}))
            done.renewed.append(wanted.name)
        else:
            client.create_automation(wanted)
            done.made.append(wanted.name)
    return done


def written(client: SyncPrefectClient, folder: Path, within_s: int | None = None) -> Installed:
    """Write into *folder* what :func:`install` would, as `prefect automation create --from-file` takes it; install nothing."""
    documents, without = ready(client, within_s)
    folder.mkdir(parents=True, exist_ok=True)
    for stem, document in documents.items():
        (folder / f"{stem}.yaml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return Installed(without=without)
