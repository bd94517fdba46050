// One application instance: `node application.mjs GENERATION WATCHED_PID`, database in APPLICATION_DATABASE_URL.
//
// An HTTP service on loopback in front of a real Prisma client; its first line on stdout is its port. It ends at SIGTERM, after
// the requests in hand, and when the process WATCHED_PID is gone. Bodies and answers are in the generation's own field names; its name
// is in the header x-generation.
// With APPLICATION_LATENCY_MS each answer comes so much later than its work is done, as of a service that has more to do.
// `PUT /shadow-write` with {on} turns V1's own shadow write on or off while it runs; GET tells {on, sent}: how many writes had both sides.
// A failure is answered with 500 and {code, mysql}: Prisma's code, and MySQL's number where the server said one.
import http from 'node:http'
import { createRequire } from 'node:module'
import { PrismaMariaDb } from '@prisma/adapter-mariadb'
import habitsOf from './habits.mjs'

const [name, watched] = process.argv.slice(2)
const { PrismaClient } = createRequire(import.meta.url)(`./client_${name}/index.js`)
const latency = Number(process.env.APPLICATION_LATENCY_MS ?? 0)
const url = new URL(process.env.APPLICATION_DATABASE_URL)
const adapter = new PrismaMariaDb({
  host: url.hostname, port: Number(url.port || 3306), user: decodeURIComponent(url.username),
  password: decodeURIComponent(url.password), database: url.pathname.slice(1), connectionLimit: 8,
  allowPublicKeyRetrieval: true, connectAttributes: { program_name: `application-${name}` },
})
// Longer than Prisma's 2 s and 5 s: on a busy test machine those would say more about the machine than about the rollout.
const prisma = new PrismaClient({ adapter, transactionOptions: { maxWait: 20_000, timeout: 20_000 } })
const generation = (await import(`./${name}.mjs`)).default(prisma)
const habits = habitsOf(generation.jobs)

const shadow = { on: false, sent: 0 }

// What the generation writes, and the other side too while its own shadow write is on.
function sides(data) {
  const both = shadow.on ? generation.bothSides(data) : data
  if (both !== data) shadow.sent += 1
  return both
}

// `update`, `create` and `delete` are Prisma's own transactions: SELECT and UPDATE, INSERT and SELECT, SELECT and DELETE.
const writes = {
  POST: async (_, { data }) => ({ done: true, row: await generation.create(sides(data)) }),
  PATCH: async (id, { data, where }) => (where ? changedIf(id, where, data)
    : { done: true, row: await generation.jobs(prisma).update({ where: { id }, data: sides(data) }) }),
  DELETE: async (id, { where }) => ({ done: await generation.jobs(prisma).delete({ where: { id, ...where } })
    .then(() => true, (error) => { if (error.code === 'P2025') return false; throw error }) }),
}

// What another instance may want too is written with updateMany and its count. Not with `update({ where: { id, state } })`:
// that one answers with the row even where its UPDATE came too late.
const changedIf = (id, where, data) => held(async (tx) => {
  const { count } = await generation.jobs(tx).updateMany({ where: { id, ...where }, data: sides(data) })
  return count && (await generation.jobs(tx).findUnique({ where: { id } }))
})

// `held` is the system's monotonic clock while the row's lock is held: it orders the writes of one row for the judge.
async function held(write) {
  let clock
  const row = await prisma.$transaction(async (tx) => {
    const found = await write(tx)
    clock = process.hrtime.bigint().toString()
    return found
  })
  return { done: Boolean(row), held: clock, row: row || undefined }
}

async function answer(request, path, query, body) {
  // In a transaction, so that whoever is healthy has made the way warm that writes take.
  if (path === '/health') return { rows: await prisma.$transaction((tx) => generation.jobs(tx).findMany({ take: 1 })) }
  if (path.startsWith('/habits/')) return held((tx) => habits[path.slice('/habits/'.length)](tx, body))
  if (path === '/shadow-write' && generation.bothSides) return Object.assign(shadow, body)
  const id = decodeURIComponent(path.slice('/jobs/'.length))
  for (const part of ['data', 'where']) if (body[part]) body[part] = generation.accept(body[part])
  if (request.method !== 'GET') return writes[request.method](id, body)
  if (id) return { row: await generation.jobs(prisma).findUnique({ where: { id } }) }
  return { rows: query.has('waiting') ? await generation.waiting(query.getAll('user')) : await generation.list(query) }
}

function failure(error) {
  const cause = error.meta?.driverAdapterError?.cause ?? error.cause ?? {}
  return { code: error.code ?? error.name, mysql: Number(cause.originalCode ?? error.errno) || null, said: String(error.message).slice(-300) }
}

const server = http.createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://loopback')
  let text = ''
  for await (const chunk of request) text += chunk
  let status = 200, reply
  try {
    reply = await answer(request, pathname, searchParams, text ? JSON.parse(text) : {})
  } catch (error) {
    [status, reply] = [500, failure(error)]
  }
  if (latency && pathname !== '/health') await new Promise((resolve) => setTimeout(resolve, latency))
  const bytes = Buffer.from(JSON.stringify(reply))
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length, 'x-generation': name }).end(bytes)
})
server.keepAliveTimeout = 60_000

function end() {
  server.close(() => prisma.$disconnect().finally(() => process.exit(0)))
  server.closeIdleConnections()
  setTimeout(() => process.exit(0), 5_000).unref()
}

process.on('SIGTERM', end)
setInterval(() => { try { process.kill(Number(watched), 0) } catch { process.exit(0) } }, 1_000).unref()
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
