import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { PGlite } from '@electric-sql/pglite'
import { drizzle } from 'drizzle-orm/pglite'
import { EXTENSIONS } from '#lib/db/durable-files.ts'
import { migrate } from '#lib/db/migration.ts'
import { schema } from '#lib/db/schema.ts'
import { TEMPLATES, templateName } from '#lib/db/template.ts'

/**
 * Creates a migrated, empty database for the embedded default to copy, unless there is one, and removes those of other
 * versions. Creating one takes PGlite seconds and hundreds of megabytes; copying and opening one takes less than a
 * second.
 */
export async function makeTemplate(folder = TEMPLATES): Promise<void> {
  const name = templateName()
  mkdirSync(folder, { recursive: true })
  for (const other of readdirSync(folder)) if (other !== name) rmSync(`${folder}/${other}`, { recursive: true })
  if (existsSync(`${folder}/${name}`)) return
  const unfinished = `${folder}/${name}.unfinished`
  const client = await PGlite.create(unfinished, { extensions: EXTENSIONS })
  await migrate(drizzle(client, { schema }))
  await client.close()
  renameSync(unfinished, `${folder}/${name}`)
}

if (import.meta.main) await makeTemplate()
