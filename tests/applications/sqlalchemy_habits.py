"""How a V0 on SQLAlchemy writes besides adding and changing an object: the same habits as in habits.mjs, in SQLAlchemy's own words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import delete, text, update
from sqlalchemy.dialects.mysql import insert
from sqlalchemy.orm import Session

Body = dict[str, Any]
Habit = Callable[[Session, type[Any], Body], int]


def replace(session: Session, model: type[Any], body: Body) -> int:
    columns = [*body["rows"][0]]
    places = ", ".join(f":{name}" for name in columns)
    statement = f"REPLACE INTO {model.__tablename__} ({', '.join(columns)}) VALUES ({places})"
    return _rows(session.execute(text(statement), body["rows"]))


def on_duplicate_key(session: Session, model: type[Any], body: Body) -> int:
    adding = insert(model).values(body["rows"])
    columns = [name for name in body["rows"][0] if name != "id"]
    return _rows(session.execute(adding.on_duplicate_key_update({name: adding.inserted[name] for name in columns})))


def upsert(session: Session, model: type[Any], body: Body) -> int:
    """`merge`: writes what differs from the row that it has read; read with its lock, so that nobody comes between."""
    (row,) = body["rows"]
    session.get(model, row["id"], with_for_update=True)
    session.merge(model(**row))
    session.flush()
    return 1


def create_many(session: Session, model: type[Any], body: Body) -> int:
    return _rows(session.execute(insert(model).prefix_with("IGNORE").values(body["rows"])))


def update_many(session: Session, model: type[Any], body: Body) -> int:
    statement = update(model).where(model.id.in_(body["ids"])).values(**body["data"])
    return _rows(session.execute(statement.execution_options(synchronize_session=False)))


def twice(session: Session, model: type[Any], body: Body) -> int:
    job = session.get_one(model, body["ids"][0], with_for_update=True)
    for step in body["steps"]:
        for name, value in step.items():
            setattr(job, name, value)
        session.flush()
    return len(body["steps"])


def delete_many(session: Session, model: type[Any], body: Body) -> int:
    statement = delete(model).where(model.id.in_(body["ids"])).filter_by(**body["where"])
    return _rows(session.execute(statement.execution_options(synchronize_session=False)))


def _rows(result: Any) -> int:
    return int(result.rowcount)


HABITS: dict[str, Habit] = {
    "replace": replace, "onDuplicateKey": on_duplicate_key, "upsert": upsert, "createMany": create_many, "updateMany": update_many,
    "twice": twice, "deleteMany": delete_many}
