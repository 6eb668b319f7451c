import { writeFileSync } from 'node:fs'
import { configurationPage, environmentExample } from '#lib/config/documentation.ts'
import { runCommand } from './command.ts'

const USAGE = `npm run docs

Writes what is generated from the code: docs/configuration.md and .env.example.`

await runCommand({
  usage: USAGE,
  options: {},
  run: () => {
    writeFileSync('docs/configuration.md', configurationPage())
    writeFileSync('.env.example', environmentExample())
  },
})
