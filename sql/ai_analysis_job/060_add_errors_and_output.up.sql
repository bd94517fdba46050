-- ADR-002 section 7, M-AI-02-04: errors and output. Comes before the rename of errorMessage, so that the
-- anchor exists and both paths end in one column order (F21).
ALTER TABLE `AiAnalysisJob`
  ADD COLUMN `errorCode` VARCHAR(100) NULL AFTER `errorMessage`,
  ADD COLUMN `publicErrorMessage` VARCHAR(500) NULL AFTER `errorCode`,
  ADD COLUMN `outputHash` VARCHAR(255) NULL AFTER `publicErrorMessage`,
  ADD COLUMN `validatedOutput` JSON NULL AFTER `outputHash`
