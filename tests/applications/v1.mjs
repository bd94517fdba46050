// V1, ADR-002 section 4: UserAiService (the new producer), the AiJob worker and the iOS list. They know lifecycleStatus and all
// new fields. The model still has status, sessionId and answerId; status is read along. Alone the triggers write it; switched on,
// V1's own shadow write (M-AI-02-10) writes it too, by the ADR's map, and leaves it out beside `locked`, which has no old word (F10).
// While it rolls out, V1 takes the fields and words of the old API too, whose clients do not know who will answer them.
const RENAMED = { status: 'lifecycleStatus', completedAt: 'finishedAt', errorMessage: 'internalErrorMessage' }
const WORDS = { processing: 'running', completed: 'succeeded' }
const accepted = ([name, value]) => [RENAMED[name] ?? name, name === 'status' ? WORDS[value] ?? value : value]
const OLD_WORDS = { pending: 'pending', running: 'processing', succeeded: 'completed', failed: 'failed', cancelled: 'failed' }

export const bothSides = (data) => {
  const status = OLD_WORDS[data.lifecycleStatus]
  return status ? { ...data, status } : data
}

export default (prisma) => {
  const jobs = (client) => client.aiJob
  return {
    jobs,
    accept: (fields) => Object.fromEntries(Object.entries(fields).map(accepted)),
    bothSides,
    create: (data) => jobs(prisma).create({ data }),
    waiting: () => jobs(prisma).findMany({
      where: { lifecycleStatus: 'pending', jobType: { not: 'habit' } }, orderBy: { createdAt: 'asc' }, take: 5 }),
    list: (query) => jobs(prisma).findMany({
      where: { userId: query.get('userId'), jobType: query.get('jobType') }, orderBy: { createdAt: 'desc' }, take: 20,
      select: { id: true, jobType: true, lifecycleStatus: true, createdAt: true } }),
  }
}
