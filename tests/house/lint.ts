import { FILE_RULES } from './file-rules.ts'
import { IMPORT_RULES } from './import-rules.ts'
import { MIGRATION_RULES } from './migration-rules.ts'
import { WORD_RULES } from './word-rules.ts'

/** Holds the sources to the rules of the house: prints what breaks them, and ends with 1 if anything does. */
for (const { name, violations } of [...IMPORT_RULES, ...FILE_RULES, ...MIGRATION_RULES, ...WORD_RULES]) {
  const found = await violations()
  if (found.length === 0) continue
  process.exitCode = 1
  console.error(`${name}:\n${found.map((violation) => `  ${violation}`).join('\n')}\n`)
}
