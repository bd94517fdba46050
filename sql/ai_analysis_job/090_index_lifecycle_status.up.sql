-- ADR-002 section 5: the worker's poll. Built after the first pass has filled lifecycleStatus (F15).
ALTER TABLE `AiAnalysisJob`
  ADD INDEX `idx_lifecycleStatus_createdAt` (`lifecycleStatus`, `createdAt`),
  ADD INDEX `idx_queueName_lifecycleStatus_createdAt` (`queueName`, `lifecycleStatus`, `createdAt`)
