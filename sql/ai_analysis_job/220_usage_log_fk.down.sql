ALTER TABLE `AiUsageLog` DROP FOREIGN KEY `AiUsageLog_jobId_fkey`
