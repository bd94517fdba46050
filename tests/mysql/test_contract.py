"""The contract held against a real table: after expand, after each phase's way back, after cleanup, and when somebody adds to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pymysql
import pytest

from flows import actions, prisma
from flows.conductor import PlainConductor
from flows.params import RunRequest, Through
from steps import catalogue
from steps import contract as contracts
from steps.contract import Contract, Stage, deviations
from steps.mysql import Session
from steps.plan import Plan
from steps.rollout import Rollout
from steps.target import Target
from tests.conftest import App

pytestmark = pytest.mark.usefixtures("remembered_rehearsals")
LATE_TABLES = ("AiJobSnapshot", "AiJobArtifact", "AiUsageLog")


@pytest.fixture
def contract(plan: Plan) -> Contract:
    found = contracts.load(plan)
    assert found is not None
    return found


@pytest.fixture
def look(database: Target) -> Iterator[Callable[..., catalogue.Shape]]:
    """The shape of a table of the test's schema now."""
    with Session(database) as session:
        yield lambda table="AiAnalysisJob": catalogue.shape(session, database.schema, table)


def expand(rollouts: Callable[..., Rollout], through: Through = Through.PRE_DEPLOY) -> None:
    request = RunRequest(plan="ai_analysis_job", by="tester", reason="because", database="command line", through=through)
    actions.run(rollouts(), request, PlainConductor())


def clean(app: App, contract: Contract) -> None:
    """What cleanup leaves, made by hand: triggers first, then the columns."""
    for trigger in app.triggers():
        app.run(f"DROP TRIGGER `{trigger}`")
    gone = [column for column in contract.columns(Stage.EXPANDED) if column not in contract.columns(Stage.CLEANED)]
    app.run("ALTER TABLE AiAnalysisJob " + ", ".join(f"DROP COLUMN `{column}`" for column in gone))


def written_from(contract: Contract, stage: Stage) -> str:
    """A CREATE TABLE made of nothing but the contract."""
    lines = []
    for name, field in contract.columns(stage).items():
        default = field.default if field.default is None or field.default.startswith("CURRENT") else f"'{field.default}'"
        lines.append(f"`{name}` {field.type} {'NULL' if field.nullable else 'NOT NULL'}" + (f" DEFAULT {default}" if default else ""))
    lines += [index.definition if index.name == "PRIMARY" else index.definition.replace("INDEX", f"INDEX `{index.name}`", 1)
              for index in contract.index]
    lines += [f"CONSTRAINT `{key.constraint}` {key.definition}" for key in contract.foreign_keys]
    return f"CREATE TABLE `AiAnalysisJob` ({', '.join(lines)}) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci"


def test_the_baseline_is_what_the_contract_says_of_the_old_fields(look: Callable[..., catalogue.Shape], contract: Contract) -> None:
    """The 13 old columns stand in the contract as they are, but for the length of jobType."""
    before = look()
    found = deviations(contract, before, Stage.EXPANDED)

    missing = [line for line in found if line.startswith("column ") and line.endswith(": is missing")]
    assert len(missing) == len(contract.columns(Stage.EXPANDED)) - 13
    assert [line for line in found if line.startswith("column ") and line not in missing] == [
        "column jobType: type is varchar(32), the contract says varchar(64)"]


@pytest.mark.parametrize("through", list(Through)[:5])
def test_after_every_phase_the_table_is_as_frozen(rollouts: Callable[..., Rollout], seeded: App, look: Callable[..., catalogue.Shape],
                                                  contract: Contract, through: Through) -> None:
    expand(rollouts, through)

    assert deviations(contract, look(), Stage.EXPANDED) == []


def test_after_cleanup_the_table_is_the_contract_to_the_byte(rollouts: Callable[..., Rollout], app: App, contract: Contract,
                                                             look: Callable[..., catalogue.Shape]) -> None:
    expand(rollouts)
    clean(app, contract)
    assert deviations(contract, look(), Stage.CLEANED) == []
    got = app.create_table().replace(" ROW_FORMAT=DYNAMIC", "")
    app.run("DROP TABLE AiAnalysisJob")

    app.run(written_from(contract, Stage.CLEANED))

    assert app.create_table() == got


def test_the_table_of_the_adrs_own_path_is_as_frozen(app: App, contract: Contract, look: Callable[..., catalogue.Shape]) -> None:
    """Both renames made in place, at the anchors of ADR section 7: the same columns in the same order, without the old sides."""
    app.run("DROP TABLE AiAnalysisJob")
    app.run(written_from(contract, Stage.RENAMED))

    assert deviations(contract, look(), Stage.RENAMED) == []
    assert len(deviations(contract, look(), Stage.EXPANDED)) == 2
    assert len(deviations(contract, look(), Stage.CLEANED)) == 3


@pytest.mark.parametrize(("change", "said"), [
    ("ADD COLUMN slipped INT NULL", "column slipped: the contract knows no such column"),
    ("ADD INDEX by_hand (progress)", "index by_hand: the contract knows no such index"),
    ("ADD CONSTRAINT odd CHECK (progress >= 0)", "check odd: the contract knows no such check"),
    ("DROP INDEX idx_targetType_targetId",
     "index idx_targetType_targetId: is missing, the contract says INDEX (`targetType`, `targetId`)"),
    ("MODIFY status VARCHAR(32) NULL DEFAULT 'pending'", "column status: nullability is NULL, the contract says NOT NULL"),
    ("MODIFY errorCode VARCHAR(101) NULL", "column errorCode: type is varchar(101), the contract says varchar(100)"),
    ("MODIFY errorCode VARCHAR(100) COLLATE utf8mb4_bin NULL",
     "column errorCode: collation is CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, the contract says none"),
    ("MODIFY errorCode VARCHAR(100) NULL FIRST", "column order: errorCode stands where the contract has id"),
    ("DROP FOREIGN KEY AiAnalysisJob_userId_fkey",
     ("foreign key AiAnalysisJob_userId_fkey: is missing, the contract says FOREIGN KEY (`userId`) REFERENCES `User` (`id`) "
      "ON DELETE RESTRICT ON UPDATE CASCADE")),
])
def test_the_freeze_names_whatever_was_changed_by_hand(app: App, contract: Contract, look: Callable[..., catalogue.Shape],
                                                       change: str, said: str) -> None:
    app.run("DROP TABLE AiAnalysisJob")
    app.run(written_from(contract, Stage.EXPANDED))
    assert deviations(contract, look(), Stage.EXPANDED) == []

    app.run(f"ALTER TABLE AiAnalysisJob {change}")

    assert deviations(contract, look(), Stage.EXPANDED) == [said]


def test_every_relation_is_a_real_foreign_key_once_its_table_is_there(rollouts: Callable[..., Rollout], seeded: App, contract: Contract,
                                                                      look: Callable[..., catalogue.Shape]) -> None:
    make_late_tables(seeded)
    expand(rollouts)

    for relation in contract.relation:
        keys = look(relation.child).foreign_keys
        own = {name: text for name, text in keys.items() if f"(`{relation.column}`) REFERENCES `{relation.parent}`" in text}
        assert own == ({relation.constraint: relation.definition} if relation.constraint else {})


def test_deleting_follows_the_rules(rollouts: Callable[..., Rollout], seeded: App) -> None:
    """ADR section 6 played through: children and usage stay with NULL, snapshots and artifacts go, the user is kept."""
    make_late_tables(seeded)
    expand(rollouts)
    seeded.run("UPDATE AiAnalysisJob SET parentJobId = 'c000000' WHERE id = 'c000001'")
    for table in LATE_TABLES:
        seeded.run(f"INSERT INTO {table} VALUES ('x', 'c000000')")
    with pytest.raises(pymysql.err.IntegrityError, match="foreign key constraint fails"):
        seeded.run("DELETE FROM User WHERE id = 'u1'")

    seeded.run("DELETE FROM AiAnalysisJob WHERE id = 'c000000'")

    assert seeded.rows("SELECT parentJobId FROM AiAnalysisJob WHERE id = 'c000001'") == [(None,)]
    assert [seeded.rows(f"SELECT jobId FROM {table}") for table in LATE_TABLES] == [[], [], [(None,)]]


def test_a_parents_id_cannot_change(rollouts: Callable[..., Rollout], seeded: App) -> None:
    """F8: declared ON UPDATE CASCADE, a self-reference acts as RESTRICT."""
    expand(rollouts)
    seeded.run("UPDATE AiAnalysisJob SET parentJobId = 'c000000' WHERE id = 'c000001'")

    with pytest.raises(pymysql.err.IntegrityError, match="foreign key constraint fails"):
        seeded.run("UPDATE AiAnalysisJob SET id = 'other' WHERE id = 'c000000'")


def test_the_models_name_every_index_of_the_table(rollouts: Callable[..., Rollout], seeded: App, contract: Contract,
                                                  look: Callable[..., catalogue.Shape]) -> None:
    """An index whose name the model does not carry would be renamed by the application's next migration (F16)."""
    expand(rollouts)
    model = prisma.models(contract)["v1"]

    for name, definition in look().indexes.items():
        columns = tuple(definition.partition("(")[2].strip(")").replace("`", "").split(", "))
        default = prisma.default_name("AiAnalysisJob", columns, "key" if "UNIQUE" in definition else "idx")
        assert name in ("PRIMARY", default) or f'map: "{name}"' in model


def make_late_tables(app: App) -> None:
    """The tables of M-AI-02-05, 06 and 08, as far as a foreign key asks."""
    for table in LATE_TABLES:
        app.run(f"CREATE TABLE {table} (id VARCHAR(191) NOT NULL PRIMARY KEY, jobId VARCHAR(191) NULL) "
                "DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci")
