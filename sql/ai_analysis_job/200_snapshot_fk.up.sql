-- ADR-002 section 6 (F9): due once AiJobSnapshot.jobId exists
ALTER TABLE `AiJobSnapshot`
  ADD CONSTRAINT `AiJobSnapshot_jobId_fkey` FOREIGN KEY (`jobId`) REFERENCES `AiAnalysisJob` (`id`)
  ON DELETE CASCADE ON UPDATE CASCADE
