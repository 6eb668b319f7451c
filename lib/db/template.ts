import { createHash } from 'node:crypto'
import { cpSync, existsSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { readMigrationFiles } from 'drizzle-orm/migrator'
import { MIGRATIONS } from './migration.ts'

/**
 * Where templates of the embedded database are kept, which lib/cli/database-template.ts makes: a build leaves the folder
 * alone. Not `path.join`, by which a build would take all of it along.
 */
export const TEMPLATES = `${process.cwd()}/.next/cache/database`

const PGLITE = `${process.cwd()}/node_modules/@electric-sql/pglite/package.json`

/** The name of a template says what it was made of: other migrations, or another PGlite, have another one. */
export function templateName(): string {
  const hash = createHash('sha256').update(readFileSync(PGLITE))
  for (const migration of readMigrationFiles(MIGRATIONS)) hash.update(migration.hash)
  return hash.digest('hex').slice(0, 16)
}

/** Begins a database in `directory` with a copy of the template, if there is one, and no such directory yet. */
export function copyTemplate(directory: string, folder = TEMPLATES): void {
  const template = `${folder}/${templateName()}`
  if (existsSync(directory) || !existsSync(template)) return
  // A process that is killed in the middle leaves no half of a database behind.
  const unfinished = `${directory}.unfinished`
  rmSync(unfinished, { recursive: true, force: true })
  cpSync(/* turbopackIgnore: true */ template, unfinished, { recursive: true })
  renameSync(unfinished, directory)
}
