"""A seeded table, the shipped plan, and a way to run one check that also proves that it changed nothing and says what its row promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from steps import catalogue
from steps.checks import CHECKS, Finding, Look
from steps.mysql import VALUE, Session, quote
from steps.plan import Plan
from steps.target import Target

Run = Callable[..., list[Finding]]


@pytest.fixture
def session(database: Target) -> Iterator[Session]:
    """A session in the fresh schema, with nine clean rows, j0 to j8, in AiAnalysisJob."""
    with Session(database) as opened:
        for i, status in enumerate(["pending"] * 3 + ["processing"] * 2 + ["completed"] * 3 + ["failed"]):
            opened.run("INSERT INTO AiAnalysisJob (id, userId, jobType, status, updatedAt) VALUES "
                       f"({VALUE}, 'u1', 'summary', {VALUE}, NOW(3))", f"j{i}", status)
        yield opened


@pytest.fixture
def found(session: Session, database: Target, plan: Plan) -> Run:
    """Run one check (a module), by default with the shipped plan; the table and its triggers are the same afterwards."""
    def run(check: ModuleType, plan: Plan = plan, by: Session | None = None) -> list[Finding]:
        def definition() -> tuple[object, ...]:
            if not catalogue.exists(session, database.schema, plan.table):
                return ()
            return (catalogue.create_statement(session, database.schema, plan.table),
                    catalogue.triggers(session, database.schema, plan.table))

        before = definition()
        answer: list[Finding] = check.run(Look(by or session, database, plan))
        assert definition() == before
        [described] = [known for known in CHECKS if known.name == check.NAME]
        assert [finding for finding in answer if not described.may_say(finding)] == []  # what the README's table promises
        return answer

    return run


@pytest.fixture
def stepped(plan: Plan) -> Callable[..., Plan]:
    """The shipped plan with another first step: `ALTER TABLE AiAnalysisJob <up>`, and *down* for its way back."""
    def make(up: str, down: str = "COMMENT ''") -> Plan:
        text = {f"010_widen_job_type.{way}.sql": f"ALTER TABLE `AiAnalysisJob` {sql}" for way, sql in (("up", up), ("down", down))}
        return plan.model_copy(update={"sql_text": {**plan.sql_text, **text}})

    return make


@pytest.fixture
def climb(session: Session, plan: Plan) -> Callable[..., None]:
    """Bring the table up by the named steps of the shipped plan."""
    def up(*steps: str) -> None:
        for step in steps:
            session.verbatim(plan.sql_text[f"{step}.up.sql"])

    return up


@pytest.fixture
def account(session: Session, database: Target) -> Iterator[Callable[..., Session]]:
    """Sessions of an account of its own, with just the rights that are granted here (`{schema}` stands for the schema)."""
    name = f"a{session.connection_id}"
    opened: list[Session] = []
    session.run(f"CREATE USER {quote(name)}@'%' IDENTIFIED BY 'secret'")

    def log_in(*grants: str) -> Session:
        for grant in grants:
            session.run(f"GRANT {grant} TO {quote(name)}@'%'".replace("{schema}", quote(database.schema)))
        opened.append(Session(Target(database.url.set(username=name, password="secret"))))
        return opened[-1]

    yield log_in
    for one in opened:
        one.close()
    session.run(f"DROP USER {quote(name)}@'%'")
