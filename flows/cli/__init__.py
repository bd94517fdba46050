"""The command line (design section 4): one file a command, exit codes and JSON in one place."""
