"""The jobs as one generation of the application reads and writes them: each method is one request."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from flows.demo.traffic.generations import Generation
from flows.demo.traffic.journal import Values, plain
from flows.demo.traffic.session import Row

POLLED, LISTED = 5, 20


class Model(ABC):
    """
    `prisma.aiJob` of one *generation*.

    Rows come back by physical column; values and conditions go in by logical name. What a read inside a write's own
    transaction shows otherwise than it was written goes to *wrong*, as (column, job). Errors are those of
    :mod:`flows.demo.traffic.failure`; after one :meth:`recover` makes the model usable again.
    """

    def __init__(self, generation: Generation, wrong: Callable[[str, str], None]) -> None:
        self.generation, self._wrong = generation, wrong
        self.answered = generation  # whose columns and words the last answer has

    @abstractmethod
    def find(self, job: str) -> Row | None:
        """`findUnique`: the job's detail, on record for the judge; None when there is none."""

    @abstractmethod
    def waiting(self, users: tuple[str, ...]) -> list[Row]:
        """A worker's poll: the oldest pending jobs; V0 asks for those of *users*."""

    @abstractmethod
    def listed(self, user: str, job_type: str) -> list[Row]:
        """The list of one user's jobs, newest first, as the iOS application asks for it; V0's is of all types."""

    @abstractmethod
    def create(self, job: str, values: Values, *, queued: bool = False) -> None:
        """`create`; *queued* when the job now waits for a worker."""

    @abstractmethod
    def update(
        self, job: str, values: Values, where: Values | None = None, *, queued: bool = False, executed: bool = False
    ) -> bool:
        """
        `update`, or with *where* a conditional one; return whether the one row was there and still fitted.

        *queued* when the job now waits for a worker, *executed* when this is the claim upon which it is run.
        """

    @abstractmethod
    def delete(self, job: str, where: Values) -> bool:
        """`delete` on a condition; return whether the row was there and fitted *where*."""

    @abstractmethod
    def recover(self) -> None:
        """Make the model usable again after an error. Safe to repeat."""

    @abstractmethod
    def close(self) -> None:
        """Safe to repeat; the next request connects anew."""

    def check(self, job: str, row: Row | None, values: Values) -> None:
        """Report every column of *row* that does not say what *values* say; they are this client's last write."""
        if row is None:
            self._wrong("id", job)
            return
        for column, value in self.answered.physical(values).items():
            if plain(column, row[column]) != plain(column, value):
                self._wrong(column, job)
