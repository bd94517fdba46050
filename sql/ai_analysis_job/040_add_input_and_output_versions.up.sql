-- ADR-002 section 7, M-AI-02-04: input and output
ALTER TABLE `AiAnalysisJob`
  ADD COLUMN `inputRef` VARCHAR(255) NULL AFTER `timeoutMs`,
  ADD COLUMN `inputSchemaVersion` VARCHAR(100) NULL AFTER `inputRef`,
  ADD COLUMN `snapshotId` VARCHAR(255) NULL AFTER `inputSchemaVersion`,
  ADD COLUMN `promptKey` VARCHAR(128) NULL AFTER `snapshotId`,
  ADD COLUMN `promptVersion` VARCHAR(100) NULL AFTER `promptKey`,
  ADD COLUMN `outputSchemaVersion` VARCHAR(100) NULL AFTER `promptVersion`
