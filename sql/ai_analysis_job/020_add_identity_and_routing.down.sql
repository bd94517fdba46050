ALTER TABLE `AiAnalysisJob`
  DROP COLUMN `triggerType`,
  DROP COLUMN `queueName`,
  DROP COLUMN `targetType`,
  DROP COLUMN `targetId`,
  DROP COLUMN `parentJobId`,
  DROP COLUMN `idempotencyKey`,
  DROP COLUMN `retriedFromJobId`
