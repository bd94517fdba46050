"""
`deploy/prefect.yaml`, made from the list of deployments: `python -m flows.prefect_yaml` writes it anew.

Descriptions, versions and forms are not in it: `prefect deploy` takes them from the flows, as `rollout serve` does.
"""

from __future__ import annotations

import json
from pathlib import Path

from flows import cockpit, served

FILE = Path(__file__).resolve().parents[1] / "deploy" / "prefect.yaml"
POOL = "mysql-rollout"
HEARTBEAT_S = 30
ENVIRONMENT = cockpit.SETTINGS | {"PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT_S)}
HEAD = """\
# Every deployment for a work pool, made from flows/served.py by `python -m flows.prefect_yaml`; `rollout serve` serves the same.
#
#     prefect work-pool create mysql-rollout --type process
#     prefect --no-prompt deploy --all --prefect-file deploy/prefect.yaml
#     prefect worker start --pool mysql-rollout --type process
#
# The package is installed where the worker runs (pip install, or the image of deploy/Dockerfile), so nothing is pulled. The database is
# ROLLOUT_DATABASE_URL of the worker, or a Secret block that a run names.
#
# Another kind of pool: `--type docker` (pip install prefect-docker) and `--type kubernetes` (prefect-kubernetes) start a container for each
# run. Then in job_variables below, instead of stream_output:
#     docker:      image: mysql-rollout:0.1.0
#                  image_pull_policy: IfNotPresent
#                  auto_remove: true
#     kubernetes:  image: mysql-rollout:0.1.0
#                  namespace: rollout
#                  service_account_name: rollout-worker
#                  backoff_limit: 0
#                  finished_job_ttl: 86400
# and in env ROLLOUT_DATABASE_URL_FILE, or databases by Secret blocks alone. With kubernetes also PREFECT_FLOW_RUN_EXECUTE_SIGTERM_BEHAVIOR:
# crash, or an evicted run starts again by itself; so a person does, with the same parameters, and it continues.
"""
POOL_LINES = """\
  work_pool: &pool
    name: {pool}
    job_variables:
      stream_output: false    # a run outlives its worker: nothing of it waits on the worker's pipe
      env:
{environment}
"""


def render() -> str:
    """The file's text, the same each time for the same list."""
    lines = [HEAD, "name: mysql-rollout", "pull: []", "", "deployments:"]
    for number, each in enumerate(served.DEPLOYED):
        lines += [f"- name: {each.name}", f"  entrypoint: {each.entrypoint}", f"  tags: [{', '.join(each.tags)}]"]
        if each.parameters:
            lines.append(f"  parameters: {json.dumps(each.parameters)}")
        if each.cron:
            lines.append(f"  schedules: {json.dumps([{'cron': each.cron, 'timezone': 'UTC', 'active': False}])}")
        lines.append("  enforce_parameter_schema: true")
        environment = "\n".join(f'        {name}: "{value}"' for name, value in ENVIRONMENT.items())
        lines += ["  work_pool: *pool" if number else POOL_LINES.format(pool=POOL, environment=environment).rstrip()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(render())
