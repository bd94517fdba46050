-- expect: no rows
-- ADR-002 section 3: the six states of the unified lifecycle
SELECT CAST(`lifecycleStatus` AS BINARY) AS value_bytes, COUNT(*) AS jobs FROM `AiAnalysisJob`
WHERE CAST(`lifecycleStatus` AS BINARY) NOT IN ('pending', 'locked', 'running', 'succeeded', 'failed', 'cancelled')
GROUP BY value_bytes
