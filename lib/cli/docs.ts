import { writeFileSync } from 'node:fs'
import { errorCodesPage } from '#lib/api/error-codes-page.ts'
import { configurationPage, environmentExample } from '#lib/config/documentation.ts'
import { runCommand } from './command.ts'

const USAGE = `npm run docs

Writes what is generated from the code: docs/configuration.md, docs/error-codes.md and .env.example.`

await runCommand({
  usage: USAGE,
  options: {},
  run: () => {
    writeFileSync('docs/configuration.md', configurationPage())
    writeFileSync('docs/error-codes.md', errorCodesPage())
    writeFileSync('.env.example', environmentExample())
  },
})
