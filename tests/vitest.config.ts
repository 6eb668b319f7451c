import { defineConfig } from 'vitest/config'

const EVERY_TEST = 'tests/**/*.test.ts'

/** Next's function for testing a matcher replaces globals by polyfills of its own. */
const ALONE = ['tests/http/pages.test.ts']

const TRACES = 'tests/support/traces.ts'

/** Tests that touch no database: a run on the second database would only repeat them. */
const WITHOUT_DATABASE = [
  'tests/{config,db,devnet,http,observability,prover,server,stellar,text,wallet}/**',
  'tests/api/{client,document,documented,malformed,validators}.test.ts',
  'tests/directory/contractor-fields.test.ts',
  'tests/auth/{challenge,devnet,form-origin,idp,oidc,session,userinfo,verification}.test.ts',
  'tests/dashboard/csv.test.ts',
  'tests/relay/sealing.test.ts',
  'tests/transfers/{fee-bump,inner-transaction,policy,refusal-reason,simulation,decision,ledger-record,look-up}.test.ts',
]

/**
 * Tests about the answers of an RPC, a mail server or the interface, and about who may do what: the rows move in the
 * same statements as in the tests that run on both.
 */
const ABOUT_OTHERS = [
  'tests/**/{lagging-nodes,pressure}.test.ts',
  'tests/api/answers.test.ts',
  'tests/directory/{access,claims-on-ledger,mail,polling}.test.ts',
  'tests/faucet/{faults,vault}.test.ts',
  'tests/relay/{channels,choice-of-channel,faults,policy,proving-ahead,requests}.test.ts',
  'tests/transfers/{exact-money,own-transaction,transfer,resending,restored-network}.test.ts',
]

/**
 * Tests about a PostgreSQL server: its processes, its connections, its plans, or instances that share it. The files
 * that open databases of both kinds by themselves are here, too.
 */
const ABOUT_SERVERS = [
  'tests/deploy/**',
  'tests/readme.test.ts',
  'tests/**/{embedded,outages,plans,restart}.test.ts',
  'tests/transfers/{crash-*,processes,quota}.test.ts',
  'tests/auth/sign-in.test.ts',
  'tests/directory/{audit,claims-interleaved,row-locks}.test.ts',
  'tests/dashboard/{attention,lists}.test.ts',
  'tests/relay/{commands,hosts,idle-channels,lock-order}.test.ts',
  'tests/transfers/quota.test.ts',
]

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    pool: 'forks',
    // Modules are loaded, and PGlite is compiled, once for each process and not for each file. No file leaves anything
    // behind: what it changes of its process, it puts back.
    isolate: false,
    // Most of the time goes into waiting for ledgers, not into computing.
    maxWorkers: 6,
    silent: 'passed-only',
    // For the programs that tests start: real proofs are made in the few tests that are about them, and what Node has
    // compiled for one program it need not compile for the next.
    env: {
      DEVNET_PROOFS: 'stand-in',
      NODE_COMPILE_CACHE: new URL('../node_modules/.cache/node', import.meta.url).pathname,
    },
    // An event that a test waits for comes when the machine gets to it: these limits are for one that never comes.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 300_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'postgres',
          include: [EVERY_TEST],
          exclude: ALONE,
          setupFiles: [TRACES],
          globalSetup: ['tests/support/postgres-setup.ts'],
        },
      },
      { extends: true, test: { name: 'alone', isolate: true, include: ALONE } },
      {
        extends: true,
        test: {
          name: 'pglite',
          include: [EVERY_TEST],
          exclude: [...WITHOUT_DATABASE, ...ABOUT_OTHERS, ...ABOUT_SERVERS],
          setupFiles: [TRACES],
          globalSetup: ['tests/support/pglite-setup.ts'],
        },
      },
    ],
  },
})
