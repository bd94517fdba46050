ALTER TABLE `AiAnalysisJob`
  DROP COLUMN `credentialMode`,
  DROP COLUMN `credentialId`,
  DROP COLUMN `modelTier`,
  DROP COLUMN `modelProvider`,
  DROP COLUMN `modelName`
