"""The readers: the list of a user's jobs as the iOS application asks for it, and details of what it showed."""

from flows.demo.traffic.client import Client, Surroundings


class Reader(Client):
    """Alternates between a list and a few details from it; the judge compares the details with all journals."""

    def __init__(self, shared: Surroundings, number: int) -> None:
        super().__init__(shared, number)
        self._listed: list[str] = []

    def request(self) -> None:
        """Read a detail of the last list, or a new list."""
        if self._listed:
            self.model.find(self._listed.pop())
            return
        rows = self.model.listed(self.dice.choice(self.shared.users), self.dice.choice(self.generation.job_types))
        self._listed = [row["id"] for row in self.dice.sample(rows, min(4, len(rows)))]
