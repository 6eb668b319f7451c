import { spawnSync } from 'node:child_process'
import { appendFileSync, globSync, readFileSync } from 'node:fs'
import { missingStatements } from '#drizzle/declared-objects.ts'
import { runCommand, UsageError } from './process/command.ts'
import { print } from './process/output.ts'

const USAGE = `npm run db:generate -- --name WHAT

Adds a numbered migration to drizzle/migrations: the changes of drizzle/schema, then the functions and triggers of
drizzle/functions.sql that are new, changed or gone. See drizzle/README.md.`

const migrations = () => globSync('drizzle/migrations/*.sql').toSorted()

/** Runs drizzle-kit, and returns the file that it added, if any. */
function runKit(...args: string[]): string | undefined {
  const before = migrations()
  const { status } = spawnSync('drizzle-kit', ['generate', '--config', 'drizzle/drizzle.config.ts', ...args], {
    stdio: ['inherit', 'ignore', 'inherit'],
  })
  if (status !== 0) throw new Error(`drizzle-kit generate failed with status ${status}`)
  return migrations().find((file) => !before.includes(file))
}

await runCommand({
  usage: USAGE,
  options: { name: { type: 'string' } },
  run: ({ name }) => {
    if (!name || !/^[a-z0-9_]+$/.test(name)) throw new UsageError('--name: lowercase letters, digits and _')
    const missing = missingStatements(
      readFileSync('drizzle/functions.sql', 'utf8'),
      migrations().map((file) => readFileSync(file, 'utf8')),
    )
    const generated = runKit('--name', name)
    if (!generated && missing.length === 0) return print('the schema and the migrations agree: nothing to add')
    const file = generated ?? runKit('--name', name, '--custom')
    if (!file) throw new Error('drizzle-kit added no migration')
    // The comment in drizzle-kit's empty file has no end of line.
    const separator = generated ? '\n--> statement-breakpoint\n' : '\n'
    if (missing.length > 0) appendFileSync(file, `${separator}${missing.join('\n--> statement-breakpoint\n')}\n`)
    print(`${file}\nRead it, and change what it does to existing rows if they need more.`)
  },
})
