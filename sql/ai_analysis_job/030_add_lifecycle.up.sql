-- ADR-002 section 7, M-AI-02-04: lifecycle
ALTER TABLE `AiAnalysisJob`
  ADD COLUMN `lifecycleStatus` VARCHAR(32) NOT NULL DEFAULT 'pending' AFTER `retriedFromJobId`,
  ADD COLUMN `priority` INT NOT NULL DEFAULT 0 AFTER `lifecycleStatus`,
  ADD COLUMN `lockedBy` VARCHAR(100) NULL AFTER `priority`,
  ADD COLUMN `lockedAt` DATETIME(3) NULL AFTER `lockedBy`,
  ADD COLUMN `lockUntil` DATETIME(3) NULL AFTER `lockedAt`,
  ADD COLUMN `cancelRequestedAt` DATETIME(3) NULL AFTER `lockUntil`,
  ADD COLUMN `attemptCount` INT NOT NULL DEFAULT 0 AFTER `progress`,
  ADD COLUMN `maxAttempts` INT NOT NULL DEFAULT 3 AFTER `attemptCount`,
  ADD COLUMN `timeoutMs` INT NOT NULL DEFAULT 120000 AFTER `maxAttempts`
