// A Prisma generator: writes the datamodel, as Prisma's own parser has read it, to the file that `output` names.
//
// Prisma speaks to it by JSON-RPC, one message a line, requests on stdin and answers on stderr.
import fs from 'node:fs'
import readline from 'node:readline'

const answers = {
  getManifest: ({ output }) => ({ manifest: { prettyName: 'datamodel', defaultOutput: output?.value ?? './datamodel.json' } }),
  generate: ({ generator, dmmf }) => fs.writeFileSync(generator.output.value, JSON.stringify(dmmf.datamodel)) ?? null,
}
for await (const line of readline.createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  process.stderr.write(`${JSON.stringify({ jsonrpc: '2.0', id, result: answers[method](params) })}\n`)
}
