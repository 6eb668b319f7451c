import { createHash } from 'node:crypto'
import { cpSync, existsSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { dataPath } from '#lib/config/data-directory.ts'
import { readMigrations } from './migration.ts'

/**
 * The folder for templates of the embedded database, which lib/cli/database-template.ts creates. A build does not clear
 * it.
 */
export const TEMPLATES = dataPath('.next/cache', 'database')

/** A template's name depends on its inputs: a different set of migrations or version of PGlite has a different name. */
export function templateName(): string {
  const hash = createHash('sha256').update(readFileSync(dataPath('node_modules/@electric-sql/pglite', 'package.json')))
  for (const migration of readMigrations()) hash.update(migration.hash)
  return hash.digest('hex').slice(0, 16)
}

/**
 * Starts a database in `directory` with a copy of the template, if there is one and the directory does not exist yet.
 */
export function copyTemplate(directory: string, folder = TEMPLATES): void {
  if (existsSync(directory) || !existsSync(folder)) return
  const template = dataPath(folder, templateName())
  if (!existsSync(template)) return
  // A process that is killed in the middle must not leave half a database behind.
  const unfinished = `${directory}.unfinished`
  rmSync(unfinished, { recursive: true, force: true })
  cpSync(/* turbopackIgnore: true */ template, unfinished, { recursive: true })
  renameSync(unfinished, directory)
}
