import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { readMigrationFiles } from 'drizzle-orm/migrator'
import { drizzle } from 'drizzle-orm/pglite'
import { MIGRATIONS, migrate } from './migration.ts'
import { schema } from './schema.ts'

/** Where a template is kept: what a build leaves alone. Not `path.join`, by which a build would take all of it along. */
const FOLDER = `${process.cwd()}/.next/cache/database`

/** Traced into a standalone build for its path, which is written out literally. */
const PGLITE = path.join(process.cwd(), 'node_modules', '@electric-sql', 'pglite', 'package.json')

/** The name of a template says what it was made of: other migrations, or another PGlite, have another one. */
function templateName(): string {
  const hash = createHash('sha256').update(readFileSync(PGLITE))
  for (const migration of readMigrationFiles(MIGRATIONS)) hash.update(migration.hash)
  return hash.digest('hex').slice(0, 16)
}

/**
 * Makes an embedded database that is migrated and has nothing in it, unless it is there; those of other versions go. To
 * make one takes PGlite seconds and hundreds of megabytes; to copy and open one takes less than a second.
 */
export async function makeTemplate(folder = FOLDER): Promise<void> {
  const name = templateName()
  mkdirSync(folder, { recursive: true })
  for (const other of readdirSync(folder)) if (other !== name) rmSync(`${folder}/${other}`, { recursive: true })
  if (existsSync(`${folder}/${name}`)) return
  const unfinished = `${folder}/${name}.unfinished`
  const client = await PGlite.create(unfinished)
  await migrate(drizzle(client, { schema }))
  await client.close()
  renameSync(unfinished, `${folder}/${name}`)
}

/** Begins a database in `directory` with a copy of the template, if there is one, and no such directory yet. */
export function copyTemplate(directory: string, folder = FOLDER): void {
  const template = `${folder}/${templateName()}`
  if (existsSync(directory) || !existsSync(template)) return
  // A process that is killed in the middle leaves no half of a database behind.
  const unfinished = `${directory}.unfinished`
  rmSync(unfinished, { recursive: true, force: true })
  cpSync(template, unfinished, { recursive: true })
  renameSync(unfinished, directory)
}

if (import.meta.main) await makeTemplate()
