-- The ledger's own tables (design section 2). They stand in the target's database, or in the plan's ledger_schema.
-- Every table has a primary key, its engine and its character set named (case C87). Statements are split at ';' + newline.

CREATE TABLE IF NOT EXISTS `_rollout_meta` (
  `id` TINYINT NOT NULL PRIMARY KEY,
  `schema_version` INT NOT NULL,
  `tool_version` VARCHAR(32) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS `_rollout_plan` (
  `table_schema` VARCHAR(64) NOT NULL,
  `table_name` VARCHAR(64) NOT NULL,
  `plan_id` VARCHAR(40) NOT NULL,
  `identity_hash` CHAR(64) NOT NULL,
  `identity` JSON NOT NULL,
  `ladder` JSON NOT NULL,
  `baseline_sql` MEDIUMTEXT NOT NULL,
  `created_at` DATETIME(3) NOT NULL,
  `ended_at` DATETIME(3) NULL,
  PRIMARY KEY (`table_schema`, `table_name`, `plan_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS `_rollout_run` (
  `run_id` CHAR(32) NOT NULL PRIMARY KEY,
  `table_schema` VARCHAR(64) NOT NULL,
  `table_name` VARCHAR(64) NOT NULL,
  `plan_id` VARCHAR(40) NOT NULL,
  `verb` VARCHAR(64) NOT NULL,
  `actor` VARCHAR(191) NOT NULL,
  `reason` VARCHAR(1000) NOT NULL,
  `host` VARCHAR(191) NOT NULL,
  `options` JSON NOT NULL,
  `tool_version` VARCHAR(32) NOT NULL,
  `started_at` DATETIME(3) NOT NULL,
  `ended_at` DATETIME(3) NULL,
  `exit_code` INT NULL,
  `outcome` VARCHAR(2000) NULL,
  KEY `by_table` (`table_schema`, `table_name`, `plan_id`, `started_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS `_rollout_phase` (
  `table_schema` VARCHAR(64) NOT NULL,
  `table_name` VARCHAR(64) NOT NULL,
  `plan_id` VARCHAR(40) NOT NULL,
  `phase` VARCHAR(32) NOT NULL,
  `state` VARCHAR(32) NOT NULL,
  `detail` JSON NOT NULL,
  `run_id` CHAR(32) NOT NULL,
  `at` DATETIME(3) NOT NULL,
  PRIMARY KEY (`table_schema`, `table_name`, `plan_id`, `phase`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS `_rollout_pass` (
  `table_schema` VARCHAR(64) NOT NULL,
  `table_name` VARCHAR(64) NOT NULL,
  `plan_id` VARCHAR(40) NOT NULL,
  `pass` VARCHAR(32) NOT NULL,
  `sweep` INT NOT NULL,
  `cursor` JSON NULL,
  `rows_examined` BIGINT UNSIGNED NOT NULL,
  `rows_changed` BIGINT UNSIGNED NOT NULL,
  `started_at` DATETIME(3) NOT NULL,
  `finished_at` DATETIME(3) NULL,
  PRIMARY KEY (`table_schema`, `table_name`, `plan_id`, `pass`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS `_rollout_lane` (
  `table_schema` VARCHAR(64) NOT NULL,
  `table_name` VARCHAR(64) NOT NULL,
  `plan_id` VARCHAR(40) NOT NULL,
  `pass` VARCHAR(32) NOT NULL,
  `lane` INT NOT NULL,
  `cursor` JSON NULL,
  `end` JSON NOT NULL,
  `rows_examined` BIGINT UNSIGNED NOT NULL,
  `rows_changed` BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (`table_schema`, `table_name`, `plan_id`, `pass`, `lane`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS `_rollout_pace` (
  `table_schema` VARCHAR(64) NOT NULL,
  `table_name` VARCHAR(64) NOT NULL,
  `plan_id` VARCHAR(40) NOT NULL,
  `pass` VARCHAR(32) NOT NULL,
  `working_ms` BIGINT UNSIGNED NOT NULL,
  `paused_ms` BIGINT UNSIGNED NOT NULL,
  `rows_estimated` BIGINT UNSIGNED NOT NULL,
  `rows_per_s` DOUBLE NOT NULL,
  `paused_for` VARCHAR(1000) NULL,
  `at` DATETIME(3) NOT NULL,
  PRIMARY KEY (`table_schema`, `table_name`, `plan_id`, `pass`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS `_rollout_control` (
  `table_schema` VARCHAR(64) NOT NULL,
  `table_name` VARCHAR(64) NOT NULL,
  `plan_id` VARCHAR(40) NOT NULL,
  `wanted` VARCHAR(16) NOT NULL,
  `rows_per_s` BIGINT UNSIGNED NULL,
  `actor` VARCHAR(191) NOT NULL,
  `reason` VARCHAR(1000) NOT NULL,
  `at` DATETIME(3) NOT NULL,
  PRIMARY KEY (`table_schema`, `table_name`, `plan_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS `_rollout_quarantine` (
  `id` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  `table_schema` VARCHAR(64) NOT NULL,
  `table_name` VARCHAR(64) NOT NULL,
  `plan_id` VARCHAR(40) NOT NULL,
  `pass` VARCHAR(32) NOT NULL,
  `key` JSON NOT NULL,
  `error` VARCHAR(1000) NOT NULL,
  `at` DATETIME(3) NOT NULL,
  KEY `by_table` (`table_schema`, `table_name`, `plan_id`, `pass`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS `_rollout_event` (
  `id` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  `run_id` CHAR(32) NOT NULL,
  `table_schema` VARCHAR(64) NOT NULL,
  `table_name` VARCHAR(64) NOT NULL,
  `plan_id` VARCHAR(40) NOT NULL,
  `at` DATETIME(3) NOT NULL,
  `phase` VARCHAR(32) NOT NULL,
  `direction` VARCHAR(16) NOT NULL,
  `step` VARCHAR(191) NOT NULL,
  `outcome` VARCHAR(64) NOT NULL,
  `statement` MEDIUMTEXT NULL,
  `duration_ms` DOUBLE NULL,
  `row_count` BIGINT NULL,
  `detail` JSON NOT NULL,
  KEY `by_table` (`table_schema`, `table_name`, `plan_id`, `id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS `_rollout_owner` (
  `table_schema` VARCHAR(64) NOT NULL,
  `table_name` VARCHAR(64) NOT NULL,
  `token` CHAR(32) NOT NULL,
  `plan_id` VARCHAR(40) NOT NULL,
  `actor` VARCHAR(191) NOT NULL,
  `host` VARCHAR(191) NOT NULL,
  `pid` INT NOT NULL,
  `connection_id` BIGINT UNSIGNED NOT NULL,
  `taken_at` DATETIME(3) NOT NULL,
  `heartbeat_at` DATETIME(3) NOT NULL,
  PRIMARY KEY (`table_schema`, `table_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
