"""What can keep a MySQL server from being provided."""


class WayClosedError(RuntimeError):
    """One way of getting a server cannot be taken on this machine; another may be open."""

    def __init__(self, way: str, reason: str, remedy: str) -> None:
        super().__init__(way, reason, remedy)
        self.way, self.reason, self.remedy = way, reason, remedy

    def __str__(self) -> str:
        return f"no MySQL server by way of {self.way}: {self.reason}; {self.remedy}"


class NoServerError(RuntimeError):
    """No way was open; carries why, way by way."""

    def __init__(self, closed: tuple[WayClosedError, ...]) -> None:
        super().__init__(closed)
        self.closed = closed

    def __str__(self) -> str:
        return "no way to a MySQL server is open here; open one of them:\n" + "\n".join(
            f"  {each.way}: {each.reason}; {each.remedy}" for each in self.closed
        )


class ServerFailedError(RuntimeError):
    """A mysqld of ours could not be initialised or started; carries the end of its log."""

    def __init__(self, doing: str, log_tail: str) -> None:
        super().__init__(doing, log_tail)
        self.doing, self.log_tail = doing, log_tail

    def __str__(self) -> str:
        return f"mysqld failed while {self.doing}; mend what its log names and try again:\n{self.log_tail}"
