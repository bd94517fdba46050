ALTER TABLE `AiJobSnapshot` DROP FOREIGN KEY `AiJobSnapshot_jobId_fkey`
