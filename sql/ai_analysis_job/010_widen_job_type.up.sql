-- ADR-002 2.1: jobType grows from 32 to 64 characters; section 7 has no statement for it (F6).
-- 64 utf8mb4 characters cross the 255-byte length prefix, so MySQL can only copy (F5).
ALTER TABLE `AiAnalysisJob` MODIFY COLUMN `jobType` VARCHAR(64) NOT NULL
