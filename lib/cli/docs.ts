import { writeFileSync } from 'node:fs'
import { errorCodesPage } from '#lib/api/error-codes-page.ts'
import { configurationPage, environmentExample } from '#lib/config/documentation.ts'
import { runCommand } from './process/command.ts'

const USAGE = `npm run docs

Writes the generated files: docs/configuration.md, docs/error-codes.md and .env.example.`

await runCommand({
  usage: USAGE,
  options: {},
  run: () => {
    writeFileSync('docs/configuration.md', configurationPage())
    writeFileSync('docs/error-codes.md', errorCodesPage())
    writeFileSync('.env.example', environmentExample())
  },
})
