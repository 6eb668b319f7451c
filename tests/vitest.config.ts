import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * A test file's name says which databases it runs on: `*.pg.test.ts` on PostgreSQL, `*.db.test.ts` on PostgreSQL and
 * on PGlite, any other on none. `*.long` belongs to `npm run test:long`, as does PGlite, except for one file per domain,
 * and allows ten minutes a test (support/time-limit.ts).
 */
const POSTGRES_ONLY = 'tests/**/*.pg.test.ts'
const EVERY_DATABASE = 'tests/**/*.db.test.ts'
const LONG = 'tests/**/*.long.*test.ts'

/** The files that `npm test` runs on PGlite, too. */
const ON_PGLITE = [
  'tests/archive/routes.db.test.ts',
  'tests/auth/routes.db.test.ts',
  'tests/dashboard/search.db.test.ts',
  'tests/directory/payouts.db.test.ts',
  'tests/faucet/faucet.db.test.ts',
  'tests/http/leaving.db.test.ts',
  'tests/relay/stop.db.test.ts',
  'tests/transfers/settlement.db.test.ts',
]

/**
 * Runs in a separate process: Next's function for testing a matcher replaces globals with its polyfills, and the pages'
 * cookies are those of a test. A file that needs a database starts a server.
 */
const ISOLATED = 'tests/**/*.isolated{,.pg}.test.ts'

/** `npm test`, `npm run test:long`, or both for files named on the command line (run.ts). */
const suite = process.env.TEST_SUITE ?? 'all'

/** The files of this suite among those of a project. */
function filesOf(include: string[], exclude: string[] = []): { include: string[]; exclude: string[] } {
  if (suite === 'quick') return { include, exclude: [...exclude, LONG] }
  return { include: suite === 'long' ? include.map(longOf) : include, exclude }
}

const longOf = (pattern: string) => pattern.replace('/*.', '/*.long.')

function filesOnPglite(): { include: string[]; exclude: string[] } {
  if (suite === 'quick') return { include: ON_PGLITE, exclude: [] }
  return { include: [EVERY_DATABASE], exclude: suite === 'long' ? ON_PGLITE : [] }
}

/**
 * Where one file runs for long: those go first, so that none of them is left to run alone at the end. Most of their time
 * is spent waiting for ledgers.
 */
const LONGEST = /\.long\.|\/(transfers\/(crash|histories|transfer|exact)|relay\/)/

/** Begins each project with its longest files. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const projects = Map.groupBy(await super.sort(files), ({ project }) => project.name)
    const isLong = ({ moduleId }: TestSpecification) => LONGEST.test(moduleId)
    return [...projects.values()].flatMap((ofProject) => [
      ...ofProject.filter(isLong),
      ...ofProject.filter((file) => !isLong(file)),
    ])
  }
}

const cpu = 'tests/support/file-cpu.ts'
const setupFiles = [cpu, 'tests/support/traces.ts']

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    pool: 'forks',
    // One process loads modules and compiles PGlite once, not once per file. Each file restores the globals it changes.
    isolate: false,
    // More workers than cores: some of the time is spent waiting for ledgers to close. Each worker loads everything anew.
    maxWorkers: 6,
    sequence: { sequencer: LongestFirst },
    silent: 'passed-only',
    env: {
      // Tests that need real proofs ask for them.
      DEVNET_PROOFS: 'stand-in',
      NODE_COMPILE_CACHE: new URL('../node_modules/.cache/node', import.meta.url).pathname,
      NODE_OPTIONS: `--import ${new URL('support/resolution.mjs', import.meta.url)}`,
    },
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 300_000 } },
    setupFiles: ['tests/support/time-limit.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          ...filesOf(['tests/**/*.test.ts'], [POSTGRES_ONLY, EVERY_DATABASE, ISOLATED]),
          setupFiles,
        },
      },
      { extends: true, test: { name: 'isolated', isolate: true, ...filesOf([ISOLATED]), setupFiles: [cpu] } },
      {
        extends: true,
        test: {
          name: 'postgres',
          ...filesOf([POSTGRES_ONLY, ...(suite === 'long' ? [] : [EVERY_DATABASE])], [ISOLATED]),
          setupFiles,
          globalSetup: ['tests/support/postgres-setup.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'pglite',
          ...filesOnPglite(),
          setupFiles,
          globalSetup: ['tests/support/pglite-setup.ts'],
        },
      },
    ],
  },
})
