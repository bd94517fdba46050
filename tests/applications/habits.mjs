// How applications write besides `create` and `update`. Each habit is one transaction of the caller's, and returns how many rows it met.
//
// REPLACE and ON DUPLICATE KEY UPDATE are raw SQL, for which Prisma has no call; the rest is Prisma's own.
const moment = (name, value) => (value && /At$|Until$/.test(name) ? new Date(value) : value)

function raw(tx, verb, rows, tail = () => '') {
  const columns = Object.keys(rows[0]).map((name) => `\`${name}\``)
  const places = rows.map(() => `(${columns.map(() => '?').join(', ')})`)
  const values = rows.flatMap((row) => Object.entries(row).map(([name, value]) => moment(name, value)))
  return tx.$executeRawUnsafe(
    `${verb} INTO \`AiAnalysisJob\` (${columns.join(', ')}) VALUES ${places.join(', ')} ${tail(columns)}`, ...values)
}

export default (jobs) => ({
  replace: (tx, { rows }) => raw(tx, 'REPLACE', rows),
  onDuplicateKey: (tx, { rows }) => raw(tx, 'INSERT', rows, (columns) => (
    `ON DUPLICATE KEY UPDATE ${columns.slice(1).map((name) => `${name} = VALUES(${name})`).join(', ')}`)),
  upsert: async (tx, { rows: [{ id, ...data }] }) => {
    await jobs(tx).upsert({ where: { id }, create: { id, ...data }, update: data })
    return 1
  },
  createMany: (tx, { rows }) => jobs(tx).createMany({ data: rows, skipDuplicates: true }).then(({ count }) => count),
  updateMany: (tx, { ids, data }) => jobs(tx).updateMany({ where: { id: { in: ids } }, data }).then(({ count }) => count),
  twice: async (tx, { ids: [id], steps }) => {
    for (const data of steps) await jobs(tx).update({ where: { id }, data })
    return steps.length
  },
  deleteMany: (tx, { ids, where }) => jobs(tx).deleteMany({ where: { id: { in: ids }, ...where } }).then(({ count }) => count),
})
