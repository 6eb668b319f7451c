import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { interfaceDocument } from '#lib/api/operations.ts'
import { type ClientDocument, clientText } from './client/client-text.ts'

/** Writes a typed client of the interface to the given path. */
const [path] = process.argv.slice(2)
if (path === undefined) {
  console.error('Where to? npm run client -- path/to/payroll-client.ts')
  process.exit(1)
}
// As it is sent: what is undefined is not there.
const document = JSON.parse(JSON.stringify(interfaceDocument('/api'))) as ClientDocument
mkdirSync(dirname(path), { recursive: true })
writeFileSync(path, clientText(document))
console.log(`${path}: import { createPayrollClient } from it`)
