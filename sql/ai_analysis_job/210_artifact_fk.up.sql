-- ADR-002 section 6 (F9): due once AiJobArtifact.jobId exists
ALTER TABLE `AiJobArtifact`
  ADD CONSTRAINT `AiJobArtifact_jobId_fkey` FOREIGN KEY (`jobId`) REFERENCES `AiAnalysisJob` (`id`)
  ON DELETE CASCADE ON UPDATE CASCADE
