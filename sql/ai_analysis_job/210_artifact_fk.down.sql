ALTER TABLE `AiJobArtifact` DROP FOREIGN KEY `AiJobArtifact_jobId_fkey`
