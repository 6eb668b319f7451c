import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import openapiTS, { astToString } from 'openapi-typescript'
import { interfaceDocument } from '../../../lib/api/interface.ts'
import { runCommand } from '../../../lib/cli/command.ts'

const USAGE = `npm run client [-- directory]

Writes the types of the interface to lib/sdk/payroll-api.d.ts. With a directory, they are written there, with
the client beside them: payroll-api.d.ts and payroll-client.ts. A project that uses them installs openapi-fetch.`

const SOURCE = join(import.meta.dirname, '../../../lib/sdk')
const CLIENT = 'payroll-client.ts'

/** The types of the interface, as openapi-typescript writes them. */
async function typesText(): Promise<string> {
  // As the document is sent: fields that are undefined are not there.
  const document = JSON.parse(JSON.stringify(interfaceDocument('/api'))) as Record<string, unknown>
  const text = astToString(await openapiTS(JSON.stringify(document)))
  return `// The types of the interface, written by \`npm run client\` from its OpenAPI document.\n\n${text}`
}

if (import.meta.main) {
  await runCommand({ usage: USAGE, options: {}, run: (_, [directory]) => writeClient(directory) })
}

async function writeClient(directory = SOURCE): Promise<void> {
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'payroll-api.d.ts'), await typesText())
  if (directory !== SOURCE) copyFileSync(join(SOURCE, CLIENT), join(directory, CLIENT))
  console.log(`${directory}: import { createPayrollClient } from './payroll-client.ts'`)
}
