-- ADR-002 section 6 (F9): due once AiUsageLog.jobId exists
ALTER TABLE `AiUsageLog`
  ADD CONSTRAINT `AiUsageLog_jobId_fkey` FOREIGN KEY (`jobId`) REFERENCES `AiAnalysisJob` (`id`)
  ON DELETE SET NULL ON UPDATE CASCADE
