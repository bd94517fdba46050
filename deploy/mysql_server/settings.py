"""The mysqld settings every server of ours starts with; a caller's options come after them and win."""

SETTINGS = (
    "--skip-name-resolve",
    "--secure-file-priv=",
    "--max-connections=300",
    "--innodb-buffer-pool-size=256M",
    "--innodb-flush-log-at-trx-commit=2",  # this and the next: a test's data need not survive a power cut
    "--sync-binlog=0",
)
