ALTER TABLE `AiAnalysisJob`
  DROP INDEX `idx_lifecycleStatus_createdAt`,
  DROP INDEX `idx_queueName_lifecycleStatus_createdAt`
