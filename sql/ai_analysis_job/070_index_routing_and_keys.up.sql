-- ADR-002 section 5 and 7: indexes on columns that no pass fills. Both unique rules (F7): the ADR's composite,
-- and the single one under Prisma's default name.
ALTER TABLE `AiAnalysisJob`
  ADD UNIQUE INDEX `AiAnalysisJob_idempotencyKey_key` (`idempotencyKey`),
  ADD UNIQUE INDEX `idx_userId_jobType_idempotencyKey` (`userId`, `jobType`, `idempotencyKey`),
  ADD INDEX `idx_userId_jobType_createdAt` (`userId`, `jobType`, `createdAt`),
  ADD INDEX `idx_targetType_targetId` (`targetType`, `targetId`),
  ADD INDEX `idx_parentJobId` (`parentJobId`)
