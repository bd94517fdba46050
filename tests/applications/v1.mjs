// V1, ADR-002 section 4: UserAiService (the new producer), the AiJob worker and the iOS list. They know lifecycleStatus and all
// new fields. The model still has status, sessionId and answerId; status is read along and never written (F10): the triggers do.
export default (prisma) => {
  const jobs = (client) => client.aiJob
  return {
    jobs,
    create: (data) => jobs(prisma).create({ data }),
    waiting: () => jobs(prisma).findMany({
      where: { lifecycleStatus: 'pending' }, orderBy: { createdAt: 'asc' }, take: 5 }),
    list: (query) => jobs(prisma).findMany({
      where: { userId: query.get('userId'), jobType: query.get('jobType') }, orderBy: { createdAt: 'desc' }, take: 20,
      select: { id: true, jobType: true, lifecycleStatus: true, createdAt: true } }),
  }
}
