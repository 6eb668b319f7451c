import { createHash } from 'node:crypto'
import { cpSync, existsSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { readMigrationFiles } from 'drizzle-orm/migrator'
import { dataPath } from '#lib/config/data-directory.ts'
import { MIGRATIONS } from './migration.ts'

/**
 * The folder for templates of the embedded database, which lib/cli/database-template.ts makes: a build leaves it alone.
 */
export const TEMPLATES = dataPath('.next/cache', 'database')

/** A template's name depends on its inputs: another set of migrations or another version of PGlite has another name. */
export function templateName(): string {
  const hash = createHash('sha256').update(readFileSync(dataPath('node_modules/@electric-sql/pglite', 'package.json')))
  for (const migration of readMigrationFiles(MIGRATIONS)) hash.update(migration.hash)
  return hash.digest('hex').slice(0, 16)
}

/** Begins a database in `directory` with a copy of the template, if there is one, and no such directory yet. */
export function copyTemplate(directory: string, folder = TEMPLATES): void {
  if (existsSync(directory) || !existsSync(folder)) return
  const template = dataPath(folder, templateName())
  if (!existsSync(template)) return
  // A process that is killed in the middle leaves no half of a database behind.
  const unfinished = `${directory}.unfinished`
  rmSync(unfinished, { recursive: true, force: true })
  cpSync(/* turbopackIgnore: true */ template, unfinished, { recursive: true })
  renameSync(unfinished, directory)
}
