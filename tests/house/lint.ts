import { runCommand } from '#lib/cli/process/command.ts'
import { CPU_RULES, describeCpu } from './cpu-rules.ts'
import { FILE_RULES } from './file-rules.ts'
import { IMPORT_RULES } from './import-rules.ts'
import { MIGRATION_RULES } from './migration-rules.ts'
import { WORD_RULES } from './word-rules.ts'

const USAGE = `npm run house

Checks the rules in tests/house: imports, files, migrations, words, and the CPU that each test file took in the last run,
which it prints. Prints each broken rule with its violations, and exits with 1 if there is any.`

await runCommand({
  usage: USAGE,
  options: {},
  explain: (error) => error,
  run: async () => {
    console.log(describeCpu())
    const rules = [...IMPORT_RULES, ...FILE_RULES, ...MIGRATION_RULES, ...WORD_RULES, ...CPU_RULES]
    for (const { name, violations } of rules) {
      const broken = await violations()
      if (broken.length === 0) continue
      process.exitCode = 1
      console.error(`${name}:\n${broken.map((violation) => `  ${violation}`).join('\n')}\n`)
    }
  },
})
