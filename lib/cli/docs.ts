import { writeFileSync } from 'node:fs'
import { errorCodesPage } from '#lib/api/error-codes-page.ts'
import { configurationPage, environmentExample } from '#lib/config/documentation.ts'
import { alertRules } from '#lib/dashboard/conditions.ts'
import { runCommand } from './process/command.ts'

const USAGE = `npm run docs

Writes the generated files: docs/configuration.md, docs/error-codes.md, docs/alerts.yml and .env.example.`

await runCommand({
  usage: USAGE,
  options: {},
  run: () => {
    writeFileSync('docs/configuration.md', configurationPage())
    writeFileSync('docs/error-codes.md', errorCodesPage())
    writeFileSync('docs/alerts.yml', alertRules())
    writeFileSync('.env.example', environmentExample())
  },
})
