// V0, ADR-002 section 4: the old producer and AiAnalysisWorker. They know status, completedAt and errorMessage, and nothing else.
export default (prisma) => {
  const jobs = (client) => client.aiAnalysisJob
  return {
    jobs,
    accept: (fields) => fields,
    create: (data) => jobs(prisma).create({ data }),
    // The old table has no index on status: only the jobs of the traffic's own users, else each poll scans the table. Jobs of the
    // clients with habits are theirs alone.
    waiting: (users) => jobs(prisma).findMany({
      where: { status: 'pending', userId: { in: users }, jobType: { not: 'habit' } }, orderBy: { createdAt: 'asc' }, take: 5 }),
    list: (query) => jobs(prisma).findMany({
      where: { userId: query.get('userId') }, orderBy: { createdAt: 'desc' }, take: 20 }),
  }
}
