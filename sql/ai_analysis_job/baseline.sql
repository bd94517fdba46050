-- The database as the old application's Prisma migrations left it (ADR-002, background and section 6).
-- Tests, demo and benchmarks start from here. AiRuntimeJob, AiRuntimeResult and AiAnalysisResult must be
-- byte-identical at the end (ADR-002 section 1).

CREATE TABLE `User` (
  `id` VARCHAR(191) NOT NULL,
  `email` VARCHAR(191) NOT NULL,
  `createdAt` DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  `updatedAt` DATETIME(3) NOT NULL,
  UNIQUE INDEX `User_email_key`(`email`),
  PRIMARY KEY (`id`)
) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;

CREATE TABLE `AiAnalysisJob` (
  `id` VARCHAR(191) NOT NULL,
  `userId` VARCHAR(191) NOT NULL,
  `jobType` VARCHAR(32) NOT NULL,
  `sessionId` VARCHAR(191) NULL,
  `answerId` VARCHAR(191) NULL,
  `status` VARCHAR(32) NOT NULL DEFAULT 'pending',
  `progress` INTEGER NOT NULL DEFAULT 0,
  `errorMessage` TEXT NULL,
  `queuedAt` DATETIME(3) NULL,
  `startedAt` DATETIME(3) NULL,
  `completedAt` DATETIME(3) NULL,
  `createdAt` DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  `updatedAt` DATETIME(3) NOT NULL,
  INDEX `AiAnalysisJob_userId_idx`(`userId`),
  PRIMARY KEY (`id`)
) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;

CREATE TABLE `AiAnalysisResult` (
  `id` VARCHAR(191) NOT NULL,
  `jobId` VARCHAR(191) NOT NULL,
  `userId` VARCHAR(191) NOT NULL,
  `resultType` VARCHAR(32) NOT NULL,
  `content` JSON NOT NULL,
  `createdAt` DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  INDEX `AiAnalysisResult_jobId_idx`(`jobId`),
  INDEX `AiAnalysisResult_userId_idx`(`userId`),
  PRIMARY KEY (`id`)
) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;

CREATE TABLE `AiRuntimeJob` (
  `id` VARCHAR(191) NOT NULL,
  `userId` VARCHAR(191) NOT NULL,
  `jobType` VARCHAR(64) NOT NULL,
  `targetType` VARCHAR(32) NULL,
  `targetId` VARCHAR(255) NULL,
  `idempotencyKey` VARCHAR(255) NULL,
  `retriedFromJobId` VARCHAR(255) NULL,
  `status` VARCHAR(32) NOT NULL DEFAULT 'pending',
  `priority` INTEGER NOT NULL DEFAULT 0,
  `progress` INTEGER NOT NULL DEFAULT 0,
  `lockedBy` VARCHAR(100) NULL,
  `lockedAt` DATETIME(3) NULL,
  `lockUntil` DATETIME(3) NULL,
  `startedAt` DATETIME(3) NULL,
  `finishedAt` DATETIME(3) NULL,
  `cancelRequestedAt` DATETIME(3) NULL,
  `retryCount` INTEGER NOT NULL DEFAULT 0,
  `maxRetryCount` INTEGER NOT NULL DEFAULT 3,
  `timeoutSeconds` INTEGER NOT NULL DEFAULT 120,
  `snapshotId` VARCHAR(255) NULL,
  `promptVersion` VARCHAR(100) NULL,
  `outputSchemaVersion` VARCHAR(100) NULL,
  `apiKeyMode` VARCHAR(32) NOT NULL DEFAULT 'platform_key',
  `credentialId` VARCHAR(255) NULL,
  `modelProvider` VARCHAR(32) NOT NULL DEFAULT 'deepseek',
  `modelName` VARCHAR(64) NOT NULL DEFAULT 'deepseek-chat',
  `errorCode` VARCHAR(100) NULL,
  `errorMessage` TEXT NULL,
  `queuedAt` DATETIME(3) NULL,
  `createdAt` DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  `updatedAt` DATETIME(3) NOT NULL,
  UNIQUE INDEX `AiRuntimeJob_idempotencyKey_key`(`idempotencyKey`),
  INDEX `AiRuntimeJob_userId_idx`(`userId`),
  INDEX `AiRuntimeJob_status_idx`(`status`),
  PRIMARY KEY (`id`)
) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;

CREATE TABLE `AiRuntimeResult` (
  `id` VARCHAR(191) NOT NULL,
  `jobId` VARCHAR(191) NOT NULL,
  `outputHash` VARCHAR(255) NULL,
  `validatedOutput` JSON NULL,
  `createdAt` DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  UNIQUE INDEX `AiRuntimeResult_jobId_key`(`jobId`),
  PRIMARY KEY (`id`)
) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;

ALTER TABLE `AiAnalysisJob` ADD CONSTRAINT `AiAnalysisJob_userId_fkey`
  FOREIGN KEY (`userId`) REFERENCES `User`(`id`) ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE `AiAnalysisResult` ADD CONSTRAINT `AiAnalysisResult_userId_fkey`
  FOREIGN KEY (`userId`) REFERENCES `User`(`id`) ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE `AiRuntimeJob` ADD CONSTRAINT `AiRuntimeJob_userId_fkey`
  FOREIGN KEY (`userId`) REFERENCES `User`(`id`) ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE `AiRuntimeResult` ADD CONSTRAINT `AiRuntimeResult_jobId_fkey`
  FOREIGN KEY (`jobId`) REFERENCES `AiRuntimeJob`(`id`) ON DELETE CASCADE ON UPDATE CASCADE;
