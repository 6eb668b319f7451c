import type { TestProject } from 'vitest/node'
import { openStore } from '#lib/db/connection.ts'
import { startPostgres } from './postgres-server.ts'

/** The address of the run's PostgreSQL, and the name of the database to clone. */
export interface PostgresTemplate {
  serverUrl: string
  template: string
}

declare module 'vitest' {
  interface ProvidedContext {
    /** undefined in a run on PGlite */
    postgres: PostgresTemplate | undefined
  }
}

/** Starts one real PostgreSQL for the run and migrates the template database that each test file clones. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const postgres = await startPostgres()
  const { server, url: serverUrl } = postgres
  await server.createDatabase('template_payroll')
  const store = openStore({ url: serverUrl.replace(/postgres$/, 'template_payroll') })
  await store.database()
  await store.close()
  project.provide('postgres', { serverUrl, template: 'template_payroll' })
  return postgres.remove
}
