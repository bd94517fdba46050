ALTER TABLE `AiAnalysisJob`
  DROP INDEX `AiAnalysisJob_idempotencyKey_key`,
  DROP INDEX `idx_userId_jobType_idempotencyKey`,
  DROP INDEX `idx_userId_jobType_createdAt`,
  DROP INDEX `idx_targetType_targetId`,
  DROP INDEX `idx_parentJobId`
