-- expect: one value
-- ADR-002 section 5: the worker's poll runs on the new column and its index
SELECT COUNT(*) FROM (
  SELECT `id` FROM `AiAnalysisJob` FORCE INDEX (`idx_lifecycleStatus_createdAt`)
  WHERE `lifecycleStatus` = 'pending' ORDER BY `createdAt` LIMIT 10
) AS poll
