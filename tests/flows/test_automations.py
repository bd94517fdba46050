"""The automations as they ship: created from their files on a real server, triggered by real runs, heard by a receiver on loopback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows import asleep, automations
from flows.params import RollbackRequest, RunRequest, Target, Through
from flows.watching import WatchRequest
from steps.errors import Refused
from tests.flows.deploy_stage import CLEANUP, ROOT, Stage
from tests.flows.serving import until
from tests.flows.stream import Receiver, as_a_worker_has_it, receiving

pytestmark = pytest.mark.timeout(400)  # a beat that does not come is waited for, and Prefect's command line is started once a file
SILENT_S = 45  # a beat is 30 s at least (Prefect's own minimum), and may be late
NOTICED_WITHIN_S = 100.0
FILES = ["crashed", "died", "failed", "parity_lost", "refused", "rolled_back", "waiting"]
STOPS = CLEANUP + '[verify]\non_fail = "stop"\ncommand = "exit 9"\n'
NAMES = sorted(document["name"] for document in automations.files().values())


def environment(**more: str) -> dict[str, str]:
    from prefect.settings import PREFECT_API_URL

    return {**os.environ, "PYTHONPATH": str(ROOT), "PREFECT_API_URL": str(PREFECT_API_URL.value()), **more}


def program(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *words], env=environment(**more), capture_output=True, text=True, timeout=120,
                          check=False)


@pytest.fixture(scope="module")
def told(prefect_server: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    """Whoever is notified; every automation was made from its file by Prefect's own command line."""
    folder = tmp_path_factory.mktemp("automations")
    with receiving() as (address, receiver):
        addresses = {"ROLLOUT_SLACK_URL": f"{address}/slack", "ROLLOUT_WEBHOOK_URL": f"{address}/hook"}
        written = program("flows.cli.automations", "--write", str(folder), "--within-s", str(SILENT_S), **addresses)
        assert written.returncode == 0, written.stdout + written.stderr
        assert sorted(path.stem for path in folder.iterdir()) == FILES
        for path in sorted(folder.iterdir()):
            made = program("prefect", "automation", "create", "--from-file", str(path))
            assert made.returncode == 0, made.stdout + made.stderr
        yield receiver


@pytest.fixture
def served(told: Receiver, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """The stage's database as a worker has it."""
    return as_a_worker_has_it(stage, monkeypatch)


def run(stage: Stage, reason: str) -> Any:
    from flows import deployments

    return deployments.rollout(RunRequest(plan=str(stage.folder), by="ann", reason=reason, through=Through.SHADOW_WRITE), return_state=True)


def known() -> list[Any]:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        return [found for name in NAMES for found in client.read_automations_by_name(name)]


@pytest.mark.parametrize(("what", "deploy", "says"), [
    ("refused", None, "was refused: "),
    ("rolled back", {"command": "exit 3", "rollback_command": "true"}, "2. deploy: failed and was rolled back: "),
    ("waits", {"how": "manual"}, "2. deploy: waits: "),
    ("stopped", {"command": "true", "rollback_command": "true", "cleanup": STOPS}, "4. verify: stopped: "),
])
def test_a_run_that_needs_somebody_tells_them_table_phase_who_why_and_what_to_do(
        told: Receiver, served: Stage, what: str, deploy: dict[str, str] | None, says: str) -> None:
    if deploy:
        served.plan(**deploy)
    if what == "refused":
        served.app.run("ALTER TABLE job DROP PRIMARY KEY")

    run(served, f"CHG {what}")

    slack = told.wait_for("/slack", f"CHG {what}")
    hook = told.wait_for("/hook", f"CHG {what}")
    assert set(slack) == {"text"}
    assert f"table {served.target.schema}.job (plan small)" in slack["text"]
    assert says in slack["text"]
    assert "What to do: " in slack["text"]
    assert slack["text"].endswith(f"By ann: CHG {what}")
    assert (hook["rollout"]["text"], hook["rollout"]["by"], hook["rollout"]["table"]) == (
        slack["text"], "ann", f"{served.target.schema}.job")
    assert hook["event"].startswith("mysql-rollout.")


def test_somebody_who_takes_a_rollout_back_is_heard_of(told: Receiver, served: Stage) -> None:
    from flows import deployments

    served.plan(command="true", rollback_command="true")
    run(served, "CHG forward")
    deployments.rollback(RollbackRequest(plan=str(served.folder), by="ben", reason="CHG taken back", to=Target.V0), return_state=True)

    slack = told.wait_for("/slack", "CHG taken back")
    assert "was taken back, as somebody asked" in slack["text"]
    assert told.wait_for("/hook", "CHG taken back")["event"] == "mysql-rollout.taken-back"


def test_lost_parity_tells_the_rows_by_key_and_never_by_content(told: Receiver, served: Stage) -> None:
    from flows import parity_watch

    run(served, "CHG parity")
    served.app.run("UPDATE job SET status = 'completed', state = 'locked' WHERE id = 'b'")
    parity_watch.parity_watch(WatchRequest(plan=str(served.folder), by="the schedule", reason="soak of CHG parity"), return_state=True)

    slack = told.wait_for("/slack", "soak of CHG parity")
    assert "found that parity is lost: " in slack["text"]
    assert "keys: b" in slack["text"]
    assert "locked" not in str(told.came)


def somebody_elses(client: Any) -> Any:
    """A run of another project's flow, which beats more slowly and happens to be called as ours is."""
    from prefect import flow
    from prefect.states import Running

    made = client.create_flow_run(flow(lambda: None, name="rollout"))
    client.set_flow_run_state(made.id, Running(), force=True)
    return made.id


def sleeper(client: Any, *, says_so: bool) -> Any:
    """A run of ours that is suspended, and whose last beat came after that."""
    from prefect import flow
    from prefect.states import Running, Suspended

    deployment = client.create_deployment(flow_id=client.create_flow(flow(lambda: None, name="rollout")), name="sleeper")
    made = client.create_flow_run_from_deployment(deployment, tags=["mysql-rollout"])
    client.set_flow_run_state(made.id, Running(), force=True)
    client.set_flow_run_state(made.id, Suspended(timeout_seconds=3600), force=True)
    beat = asleep.event(str(made.id), made.name, str(made.flow_id), "rollout", made.tags) | {"event": "prefect.flow-run.heartbeat"}
    client.request("POST", "/events", json=[beat])
    if says_so:
        client.request("POST", "/events", json=[asleep.event(str(made.id), made.name, str(made.flow_id), "rollout", made.tags)])
    return made.id


def test_a_run_that_dies_without_a_word_is_marked_crashed_and_told(told: Receiver, served: Stage) -> None:
    from prefect.client.orchestration import get_client

    begun, go = served.folder / "begun", served.folder / "go"
    served.plan(command=f"touch {begun}; while [ ! -e {go} ]; do sleep 0.05; done", rollback_command="true")
    process = subprocess.Popen([sys.executable, "-c", "from flows.cli.app import main; main()", "run", str(served.folder), "--by", "ann",
                                "--reason", "CHG died"], env=environment(PREFECT_FLOWS_HEARTBEAT_FREQUENCY="30"),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with get_client(sync_client=True) as client:
        def phase() -> Any:
            runs = [one for one in client.read_flow_runs() if one.name == f"rollout {served.folder} by ann"]
            return runs and runs[0].labels.get("mysql-rollout.phase")

        while not begun.exists() or phase() != "2. deploy":
            assert process.poll() is None
            threading.Event().wait(0.2)
        foreign, sleeps, beats_last = somebody_elses(client), sleeper(client, says_so=True), sleeper(client, says_so=False)
    process.send_signal(signal.SIGKILL)
    process.wait()
    go.touch()

    slack = told.wait_for("/slack", "CHG died", NOTICED_WITHIN_S)

    assert slack["text"].startswith(f"`rollout {served.folder} by ann` of table {served.target.schema}.job (plan ")
    assert ", 2. deploy: died without a word. What to do: see `rollout status " in slack["text"]
    assert slack["text"].endswith("By ann: CHG died")
    with get_client(sync_client=True) as client:
        (flow_run,) = [one for one in client.read_flow_runs() if one.name == f"rollout {served.folder} by ann"]
        assert client.read_flow_run(foreign).state.name == "Running"
        until(lambda: client.read_flow_run(beats_last).state.name == "Crashed")  # what a run that is suspended has to keep from itself
        assert client.read_flow_run(sleeps).state.name == "Suspended"
    assert (flow_run.state.type, flow_run.state.name) == ("CRASHED", "Crashed")


def test_installing_again_makes_nothing_twice_and_what_was_switched_off_stays_off(told: Receiver) -> None:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        off = client.read_automations_by_name("mysql-rollout: refused")[0]
        client.request("PATCH", "/automations/{id}", path_params={"id": off.id}, json={"enabled": False})
        done = automations.install(client, SILENT_S)

    found = known()
    assert (done.made, sorted(done.renewed), done.without) == ([], NAMES, [])
    assert sorted(one.name for one in found) == NAMES
    assert [one.name for one in found if not one.enabled] == ["mysql-rollout: refused"]


def test_no_file_holds_an_address_and_each_names_its_blocks(told: Receiver) -> None:
    for stem, document in automations.files().items():
        assert "://" not in yaml.safe_dump(document), stem
        names = {action.get("block_document_id") for action in document["actions"]}
        assert names == ({None} if stem == "died" else {"webhook/rollout-slack", "webhook/rollout-webhook"})


def test_without_any_block_nothing_is_installed_and_with_one_only_its_notifications(told: Receiver) -> None:
    from uuid import uuid4

    from prefect.client.orchestration import SyncPrefectClient, get_client

    with get_client(sync_client=True) as client, pytest.MonkeyPatch.context() as patch:
        patch.setattr(automations, "_id_of", lambda *_: None)
        with pytest.raises(Refused, match="ROLLOUT_SLACK_URL or ROLLOUT_WEBHOOK_URL"):
            automations.ready(client)

        def slack_alone(_client: SyncPrefectClient, name: str) -> Any:
            return uuid4() if name.endswith("slack") else None

        patch.setattr(automations, "_id_of", slack_alone)
        documents, missing = automations.ready(client)

    assert missing == ["webhook/rollout-webhook"]
    assert sorted(documents) == FILES
    assert [len(documents[stem]["actions"]) for stem in FILES] == [1] * len(FILES)


def test_the_files_ship_with_the_package() -> None:
    assert sorted(automations.files()) == FILES
    assert Path(automations.FOLDER).is_dir()
