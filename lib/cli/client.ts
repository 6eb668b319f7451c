import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { interfaceDocument } from '#lib/api/operations.ts'
import { type ClientDocument, clientText } from './client/client-text.ts'
import { runCommand } from './command.ts'

const USAGE = `npm run client -- path/to/payroll-client.ts

Writes a typed client of the interface to the given path.`

await runCommand({
  usage: USAGE,
  options: {},
  run: (_, [path]) => {
    if (path === undefined) throw new Error(USAGE)
    // As it is sent: what is undefined is not there.
    const document = JSON.parse(JSON.stringify(interfaceDocument('/api'))) as ClientDocument
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, clientText(document))
    console.log(`${path}: import { createPayrollClient } from it`)
  },
})
