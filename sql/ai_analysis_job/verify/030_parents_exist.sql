-- expect: no rows
-- ADR-002 section 6: a child never points at a job that is gone
SELECT COUNT(*) AS children FROM `AiAnalysisJob` AS child
LEFT JOIN `AiAnalysisJob` AS parent ON parent.`id` = child.`parentJobId`
WHERE child.`parentJobId` IS NOT NULL AND parent.`id` IS NULL
HAVING children > 0
