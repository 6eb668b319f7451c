import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { openStore } from '#lib/db/connection.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** the folder of a migrated PGlite; undefined in a run on PostgreSQL */
    pglite: string | undefined
  }
}

/** Creates one PGlite for the run. Each test file copies it, because creating one takes seconds. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'payroll-pglite-'))
  const store = openStore({ directory })
  await store.database()
  await store.close()
  project.provide('pglite', directory)
  return () => rm(directory, { recursive: true, force: true })
}
