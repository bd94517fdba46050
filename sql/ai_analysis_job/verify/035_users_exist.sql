-- expect: no rows
-- F26: beside the composite unique index some servers take jobs whose user is not there
SELECT COUNT(*) AS jobs FROM `AiAnalysisJob` AS job
LEFT JOIN `User` AS user ON user.`id` = job.`userId`
WHERE user.`id` IS NULL
HAVING jobs > 0
