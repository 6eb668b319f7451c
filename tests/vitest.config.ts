import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * A test file's name says which databases it runs on: `*.pg.test.ts` on PostgreSQL, `*.db.test.ts` on PostgreSQL and
 * on PGlite, any other on none. `*.slow` allows it ten minutes a test (support/time-limit.ts).
 */
const POSTGRES_ONLY = 'tests/**/*.pg.test.ts'
const EVERY_DATABASE = 'tests/**/*.db.test.ts'

/**
 * Runs in a separate process: Next's function for testing a matcher replaces globals with its polyfills, and the pages'
 * cookies are those of a test. A file that needs a database starts a server.
 */
const ISOLATED = 'tests/**/*.isolated{,.pg}.test.ts'

/** Begins each project with its slow files, so that none of them is left to run alone at the end. */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const projects = Map.groupBy(await super.sort(files), ({ project }) => project.name)
    const isSlow = ({ moduleId }: TestSpecification) => moduleId.includes('.slow.')
    return [...projects.values()].flatMap((ofProject) => [
      ...ofProject.filter(isSlow),
      ...ofProject.filter((file) => !isSlow(file)),
    ])
  }
}

const setupFiles = ['tests/support/traces.ts']

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    pool: 'forks',
    // One process loads modules and compiles PGlite once, not once per file. Each file restores the globals it changes.
    isolate: false,
    // More workers than cores: some of the time is spent waiting for ledgers to close. Each worker loads everything anew.
    maxWorkers: 6,
    sequence: { sequencer: SlowFirst },
    silent: 'passed-only',
    env: {
      // Tests that need real proofs ask for them.
      DEVNET_PROOFS: 'stand-in',
      NODE_COMPILE_CACHE: new URL('../node_modules/.cache/node', import.meta.url).pathname,
      NODE_OPTIONS: `--import ${new URL('support/resolution.mjs', import.meta.url)}`,
    },
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 300_000 } },
    setupFiles: ['tests/support/time-limit.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['tests/**/*.test.ts'],
          exclude: [POSTGRES_ONLY, EVERY_DATABASE, ISOLATED],
          setupFiles,
        },
      },
      { extends: true, test: { name: 'isolated', isolate: true, include: [ISOLATED] } },
      {
        extends: true,
        test: {
          name: 'postgres',
          include: [POSTGRES_ONLY, EVERY_DATABASE],
          exclude: [ISOLATED],
          setupFiles,
          globalSetup: ['tests/support/postgres-setup.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'pglite',
          include: [EVERY_DATABASE],
          setupFiles,
          globalSetup: ['tests/support/pglite-setup.ts'],
        },
      },
    ],
  },
})
