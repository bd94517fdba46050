-- ADR-002 section 6 and the model's parentJob relation (F8). MySQL treats a self-reference's update rule as RESTRICT.
ALTER TABLE `AiAnalysisJob`
  ADD CONSTRAINT `AiAnalysisJob_parentJobId_fkey` FOREIGN KEY (`parentJobId`) REFERENCES `AiAnalysisJob` (`id`)
  ON DELETE SET NULL ON UPDATE CASCADE
