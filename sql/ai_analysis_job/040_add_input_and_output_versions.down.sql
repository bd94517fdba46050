ALTER TABLE `AiAnalysisJob`
  DROP COLUMN `inputRef`,
  DROP COLUMN `inputSchemaVersion`,
  DROP COLUMN `snapshotId`,
  DROP COLUMN `promptKey`,
  DROP COLUMN `promptVersion`,
  DROP COLUMN `outputSchemaVersion`
