"""What to do when a server does not let a connection in for its number: nothing is wrong with address, account or network (case C83)."""

from __future__ import annotations

_ACCOUNT = "the account has as many connections as it may (max_user_connections): close some, or raise the limit with ALTER USER … WITH"
REMEDIES = {
    1040: "the server has as many connections as it takes (max_connections): close idle ones or raise the limit",
    1203: f"{_ACCOUNT} MAX_USER_CONNECTIONS or the server's max_user_connections",
    1226: f"{_ACCOUNT} MAX_USER_CONNECTIONS; a limit per hour ends with the hour",
}
"""By MySQL's error number."""
