-- The rights that `rollout` needs, by what it is used for. Made from steps/checks/rights.py: `python -m flows.grants_sql`.
--
-- Put your names in place of those in capitals, leave out what says "only" and is not so with your plan, and run it as an account
-- that may grant. `rollout check` names each right that is missing, with the GRANT. Behind each heading stands what has to be added
-- for it to all before it; a run asks for all of them at once, so that it does not stop half-way.
--
-- YOUR_TOOL, YOUR_HOST, YOUR_PASSWORD: the account. YOUR_DATABASE, YOUR_TABLE: plan.table and its database. YOUR_LEDGER_DATABASE:
-- plan.ledger_schema, else YOUR_DATABASE. Behind the last dot of a line that ends in .* every _ of a database's name is a wildcard:
-- write \_ for it, but not with partial_revokes = ON, where names are plain; there the clone needs a schema of its own,
-- plan.rehearsal_schema.
--
-- Nothing of the application's other tables, no right to create users, no SUPER. With the binary log on, creating triggers needs
-- log_bin_trust_function_creators = 1, or SUPER, which is not in here.

CREATE USER 'YOUR_TOOL'@'YOUR_HOST' IDENTIFIED BY 'YOUR_PASSWORD' REQUIRE SSL;

-- [look] rollout status and report. Enough for an account that only looks.

-- The steps of the plan, its passes and its triggers
GRANT SELECT, TRIGGER ON `YOUR_DATABASE`.`YOUR_TABLE` TO 'YOUR_TOOL'@'YOUR_HOST';

-- The ledger
GRANT SELECT ON `YOUR_LEDGER_DATABASE`.* TO 'YOUR_TOOL'@'YOUR_HOST';

-- [rehearse] rollout check, plan and rehearse: what the checks look at, and the clone in a schema of its own.

-- The new foreign key. One line for each table that a step of the plan refers to
GRANT REFERENCES ON `YOUR_DATABASE`.`YOUR_PARENT` TO 'YOUR_TOOL'@'YOUR_HOST';

-- The rehearsal, whose clone gets its foreign keys. One line for each other table at the end of a foreign key of this one, either
-- way
GRANT SELECT ON `YOUR_DATABASE`.`YOUR_RELATIVE` TO 'YOUR_TOOL'@'YOUR_HOST';

-- The rehearsal on a clone
GRANT SELECT, INSERT, UPDATE, CREATE, DROP, REFERENCES, INDEX, ALTER, TRIGGER ON `\_rollout\_rehearsal\_%`.* TO 'YOUR_TOOL'@'YOUR_HOST';

-- Finding a gap in the traffic. Without it: it cannot see who holds the table, and it is refused but for --accept no-gap
GRANT SELECT ON performance_schema.metadata_locks TO 'YOUR_TOOL'@'YOUR_HOST';

-- Finding a gap in the traffic. Without it: it cannot see who holds the table, and it is refused but for --accept no-gap
GRANT SELECT ON performance_schema.threads TO 'YOUR_TOOL'@'YOUR_HOST';

-- Looking at open transactions. Without it: their age, old snapshots, and the row versions left for instant changes are not seen
GRANT PROCESS ON *.* TO 'YOUR_TOOL'@'YOUR_HOST';

-- Looking at replication. Without it: whether this server is itself a replica is not seen
GRANT REPLICATION CLIENT ON *.* TO 'YOUR_TOOL'@'YOUR_HOST';

-- Seeing what else names the table. Only where columns are removed. Without it: foreign keys, views, triggers, events and routines
-- that this account may not see are not told or waited for
GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, EXECUTE ON `YOUR_DATABASE`.* TO 'YOUR_TOOL'@'YOUR_HOST';

-- Naming who holds the table. Without it: the digest of a holder's last statement is not told
GRANT SELECT ON performance_schema.events_statements_current TO 'YOUR_TOOL'@'YOUR_HOST';

-- Finding a gap in which no transaction has just begun. Without it: now and then one of those is killed (1213) under heavy load
GRANT SELECT ON performance_schema.events_transactions_current TO 'YOUR_TOOL'@'YOUR_HOST';

-- The evidence that nobody uses the old columns. Only where columns are removed. Without it: cleanup will need --accept
-- cleanup-unseen, and its watch for errors sees none
GRANT SELECT ON performance_schema.events_statements_summary_by_digest TO 'YOUR_TOOL'@'YOUR_HOST';

-- [pre_deploy] rollout run and rollback, phases 1 to 5 and their ways back; those after pre_deploy need nothing more.

-- The steps of the plan, its passes and its triggers
GRANT INSERT, UPDATE, REFERENCES, ALTER ON `YOUR_DATABASE`.`YOUR_TABLE` TO 'YOUR_TOOL'@'YOUR_HOST';

-- The hold in which steps are done
GRANT LOCK TABLES ON `YOUR_DATABASE`.* TO 'YOUR_TOOL'@'YOUR_HOST';

-- The foreign key that is due there. One line for each table of a [[pre_deploy.leaf]], once it is there
GRANT SELECT, ALTER ON `YOUR_DATABASE`.`YOUR_LEAF` TO 'YOUR_TOOL'@'YOUR_HOST';

-- The ledger
GRANT INSERT, UPDATE, DELETE, CREATE ON `YOUR_LEDGER_DATABASE`.* TO 'YOUR_TOOL'@'YOUR_HOST';

-- The history list length, for which a gentle pass waits (without it until backfill.max_pause_s is over). Or set
-- backfill.max_history_length = 0
GRANT PROCESS ON *.* TO 'YOUR_TOOL'@'YOUR_HOST';

-- Sparing the application's commits. Without it: passes do not see how long they take
GRANT SELECT ON performance_schema.events_statements_summary_by_user_by_event_name TO 'YOUR_TOOL'@'YOUR_HOST';

-- [cleanup] Phase 6 and its way back, and rollout uninstall.

-- Cleanup's archive. Only where columns are removed, and for rollout uninstall
GRANT DROP ON `YOUR_LEDGER_DATABASE`.* TO 'YOUR_TOOL'@'YOUR_HOST';

-- The evidence that nobody uses the old columns. Only where columns are removed. Without it: cleanup will need --accept
-- cleanup-unseen, and its watch for errors sees none
GRANT SELECT ON performance_schema.events_errors_summary_global_by_error TO 'YOUR_TOOL'@'YOUR_HOST';

-- Telling the generations of the application apart ([fleet]). Only with [fleet] in the plan. Without it: cleanup will need --accept
-- fleet-unseen
GRANT SELECT ON performance_schema.session_connect_attrs TO 'YOUR_TOOL'@'YOUR_HOST';

-- [optional] Only for what is named; nothing else is lost without.

-- The hand-over of copies to pt-online-schema-change, on the database
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, TRIGGER, LOCK TABLES ON `YOUR_DATABASE`.* TO 'YOUR_TOOL'@'YOUR_HOST';

-- The hand-over of copies to pt-online-schema-change, on the server
GRANT PROCESS, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO 'YOUR_TOOL'@'YOUR_HOST';

-- --end-blockers, to end sessions of other accounts (without SYSTEM_USER)
GRANT CONNECTION_ADMIN ON *.* TO 'YOUR_TOOL'@'YOUR_HOST';

-- --end-blockers, to know sessions of its own
GRANT SELECT ON performance_schema.session_connect_attrs TO 'YOUR_TOOL'@'YOUR_HOST';

-- On a replica that backfill.replicas names, for the account in its URL: its state
GRANT REPLICATION CLIENT ON *.* TO 'YOUR_TOOL'@'YOUR_HOST';

-- On a replica that backfill.replicas names, for the account in its URL: our heartbeat
GRANT SELECT ON `YOUR_LEDGER_DATABASE`.* TO 'YOUR_TOOL'@'YOUR_HOST';
