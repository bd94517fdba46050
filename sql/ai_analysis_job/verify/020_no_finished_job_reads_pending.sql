-- expect: no rows
-- needs: sync
-- F17: a worker that polls lifecycleStatus = 'pending' must never run history again
SELECT `lifecycleStatus`, COUNT(*) AS jobs FROM `AiAnalysisJob`
WHERE `lifecycleStatus` = 'pending' AND `status` IN ('processing', 'completed', 'failed')
GROUP BY `lifecycleStatus`
