ALTER TABLE `AiAnalysisJob` DROP FOREIGN KEY `AiAnalysisJob_parentJobId_fkey`
