ALTER TABLE `AiAnalysisJob`
  DROP COLUMN `errorCode`,
  DROP COLUMN `publicErrorMessage`,
  DROP COLUMN `outputHash`,
  DROP COLUMN `validatedOutput`
