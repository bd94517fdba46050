-- ADR-002 section 7, M-AI-02-03
ALTER TABLE `AiAnalysisJob`
  ADD COLUMN `triggerType` VARCHAR(32) NOT NULL DEFAULT 'api' AFTER `jobType`,
  ADD COLUMN `queueName` VARCHAR(64) NOT NULL DEFAULT 'ai-interactive' AFTER `triggerType`,
  ADD COLUMN `targetType` VARCHAR(32) NULL AFTER `sessionId`,
  ADD COLUMN `targetId` VARCHAR(255) NULL AFTER `targetType`,
  ADD COLUMN `parentJobId` VARCHAR(255) NULL AFTER `targetId`,
  ADD COLUMN `idempotencyKey` VARCHAR(255) NULL AFTER `parentJobId`,
  ADD COLUMN `retriedFromJobId` VARCHAR(255) NULL AFTER `idempotencyKey`
