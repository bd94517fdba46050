"""What people touch: the runbook, its Prefect flows, the report and the command line. Prefect is imported here alone."""
