"""`[deploy]` and `[fleet]` of a plan: how a generation of the application goes out and comes back, and how one is told from another."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from steps.addresses import Address, SafeAddress
from steps.plan_sections import Part

Generation = Literal["v0", "v1", "v2"]
Image = Annotated[str, StringConstraints(pattern=r"^[^\s\x00-\x1f]{1,512}$")]
Label = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")]
Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$")]

class Workload(Part):
    """`[[deploy.kubernetes.workload]]`: one container of one Deployment, and its image in each generation that changes it."""

    deployment: Label
    container: Label
    images: dict[Generation, Image] = Field(min_length=1)

    @property
    def name(self) -> str:
        return f"{self.deployment}/{self.container}"


class Kubernetes(Part):
    """`[deploy.kubernetes]`: which cluster, which namespace, which images. Nothing outside the namespace is ever asked for."""

    namespace: Label
    workload: tuple[Workload, ...] = Field(min_length=1)
    kubeconfig: str | None = None
    context: str | None = None
    in_cluster: bool = False
    field_manager: Label = "mysql-rollout"

    @model_validator(mode="after")
    def _one_cluster_and_each_container_once(self) -> Kubernetes:
        if self.in_cluster and (self.kubeconfig or self.context):
            raise ValueError("in_cluster and kubeconfig or context exclude each other")
        if len({workload.name for workload in self.workload}) != len(self.workload):
            raise ValueError("a container is named twice")
        return self


class Service(Part):
    """`[[deploy.compose.service]]`: one service and its image in each generation that changes it."""

    name: Word
    images: dict[Generation, Image] = Field(min_length=1)


class Compose(Part):
    """`[deploy.compose]`: the project's files, and the override file of ours that names the images and stays beside them."""

    files: tuple[str, ...] = Field(min_length=1)
    override: str = "compose.rollout.json"
    folder: str = "."
    project: Label | None = None
    program: str = "docker compose"
    service: tuple[Service, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _each_service_once(self) -> Compose:
        if len({service.name for service in self.service}) != len(self.service):
            raise ValueError("a service is named twice")
        if self.override in self.files:
            raise ValueError("override is written by us and cannot be one of files")
        return self


class DeployService(Part):
    """`[deploy.http]`: a service that deploys: start, status and undo over HTTP. The token comes from outside the plan."""

    start_url: SafeAddress
    status_url: SafeAddress
    undo_url: SafeAddress | None = None
    bodies: dict[Generation, dict[str, Any]] = Field(min_length=1, description="what start is sent, by generation")
    token_env: Word | None = None
    token_file: str | None = None
    token_header: Word = "Authorization"  # noqa: S105  # a header's name
    token_prefix: str = "Bearer "  # noqa: S105  # what stands before a token
    idempotency_header: Word = "Idempotency-Key"
    ca_file: str | None = Field(default=None, description="an authority to trust beside the system's")
    id_at: str = "id"
    status_at: str = "status"
    reason_at: str | None = None
    done: tuple[str, ...] = Field(default=("succeeded",), min_length=1)
    failed: tuple[str, ...] = Field(default=("failed",), min_length=1)
    undone: tuple[str, ...] = Field(default=("undone",), min_length=1)

    @model_validator(mode="after")
    def _fits(self) -> DeployService:
        if "{id}" not in self.status_url or (self.undo_url and "{id}" not in self.undo_url):
            raise ValueError("status_url and undo_url need {id}, which the answer to start fills")
        if self.token_env and self.token_file:
            raise ValueError("token_env and token_file exclude each other")
        if set(self.failed) & {*self.done, *self.undone}:
            raise ValueError("a status is both failed and done or undone")
        return self


class Deploy(Part):
    """`[deploy]`: how the application's new generation is put out and taken back."""

    how: Literal["manual", "command", "kubernetes", "compose", "http"] = "manual"
    command: str | None = None
    rollback_command: str | None = None
    health_command: str | None = None
    health_url: Address | None = None
    deadline_s: int = Field(default=900, ge=1, le=86_400)
    health_every_s: float = Field(default=2, ge=0.05, le=60)
    kubernetes: Kubernetes | None = None
    compose: Compose | None = None
    http: DeployService | None = None

    @model_validator(mode="before")
    @classmethod
    def _command_alone_is_enough(cls, data: object) -> object:
        """`--set deploy.command=…` alone deploys by command (design section 4)."""
        if isinstance(data, dict) and data.get("command") and data.get("how", "manual") == "manual":
            return {**data, "how": "command"}
        return data

    @model_validator(mode="after")
    def _says_what_it_needs(self) -> Deploy:
        if self.how == "command" and not self.command:
            raise ValueError('how = "command" needs deploy.command')
        if self.how in ("kubernetes", "compose", "http"):
            if getattr(self, self.how) is None:
                raise ValueError(f'how = "{self.how}" needs [deploy.{self.how}]')
            if self.command:
                raise ValueError(f'how = "{self.how}" and deploy.command exclude each other; set deploy.how=command to use the command')
        return self


class Alive(Part):
    """How the sessions of one generation are known: by account, by a connection attribute, or by both."""

    user: str | None = None
    attribute: Annotated[str, StringConstraints(min_length=1, max_length=32)] | None = None
    value: str | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Alive:
        if self.user is None and self.attribute is None:
            raise ValueError("needs user, or attribute and value")
        if (self.attribute is None) != (self.value is None):
            raise ValueError("attribute and value go together")
        return self


class Fleet(Part):
    """`[fleet]`: the sessions of each generation, and those of others that are no generation at all."""

    v0: Alive | None = None
    v1: Alive | None = None
    v2: Alive | None = None
    others: tuple[Alive, ...] = ()
    wait_s: int = Field(default=30, ge=0, le=3600, description="how long the last sessions of a generation may take to end")

    def generations(self) -> dict[str, Alive]:
        """Those that the plan can tell apart."""
        return {name: rule for name, rule in (("v0", self.v0), ("v1", self.v1), ("v2", self.v2)) if rule}
