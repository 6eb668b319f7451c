import { Keypair, Networks, StrKey } from '@stellar/stellar-sdk'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { ConfigurationError, type Environment, readEnvironment, VARIABLE_NAMES } from '#lib/config/environment.ts'
import { generateRelayKey, publicHalf } from '#lib/config/relay-key.ts'

const seedOf = (byte: number) => Keypair.fromRawEd25519Seed(new Uint8Array(32).fill(byte)).secret()
const contractOf = (byte: number) => StrKey.encodeContract(new Uint8Array(32).fill(byte))
const [seed, otherSeed, token, otherToken] = [seedOf(1), seedOf(2), contractOf(1), contractOf(2)]

const relayKey = generateRelayKey()
const relayPublic = publicHalf(relayKey)

interface Case {
  /** valid values with their parsed results */
  good: Record<string, unknown>
  bad: string[]
  /** other variables that the valid values require */
  beside?: Record<string, string>
  /** the field of the environment, if its name differs from the variable's */
  field?: keyof Environment
}

const itself = (...values: string[]) => Object.fromEntries(values.map((value) => [value, value]))
const port = { good: { 0: 0, 65535: 65_535, ' 80\n': 80 }, bad: ['65536', '-1', '1e3', '80.0', '8 0', '0x50', 'http'] }
const stroops = {
  good: { 0: 0n, ['9'.repeat(18)]: 999_999_999_999_999_999n },
  bad: ['-1', '1.5', '1_000', '1000000000000000000', 'unlimited', 'Infinity'],
}
const anyText = { good: itself('as it is'), bad: [] }
const database = {
  good: itself('postgres://u:p@h/d', 'postgresql://h/d', 'postgres://h/d?user=u@h&password=p'),
  bad: [
    'mysql://u:hunter2@h/d',
    'h:5432',
    'POSTGRES',
    'postgres://u:12/hunter2@h/d',
    'postgres://u:1?hunter2@h/d',
    'postgres://u:1#hunter2@h/d',
  ],
}
const address = Keypair.fromSecret(seed).publicKey()
const badSeeds = [address, seed.slice(0, -1), `${seed.slice(0, -1)}A`, seed.toLowerCase()]
const secretSeed = { good: itself(seed), bad: badSeeds }
const badOrigins = [
  'payroll.example',
  'ftp://payroll.example',
  'https://payroll.example/api',
  'https://payroll.example?x=1',
  'https://payroll.example#x',
  'https://user:hunter2@payroll.example',
  'javascript:alert(1)',
]

const badHosts = ['https://payroll.vercel.app', 'payroll.vercel.app/x', 'a b', 'user@payroll.vercel.app', 'a:b']
const preview: Case = {
  field: 'PUBLIC_URL',
  beside: { VERCEL_ENV: 'preview' },
  good: { 'payroll-git-next-us.vercel.app': 'https://payroll-git-next-us.vercel.app' },
  bad: badHosts,
}
const provider = { IDP_ISSUER: 'https://login.example', IDP_AUDIENCE: 'payroll' }
const jwk = (key: object) => JSON.stringify(key)

const CASES: Record<(typeof VARIABLE_NAMES)[number], Case> = {
  PUBLIC_URL: {
    good: {
      ...itself('https://payroll.example', 'http://[::1]:3000', `https://${'a'.repeat(59)}`),
      'https://Payroll.Example:443/': 'https://payroll.example',
    },
    bad: [...badOrigins, `https://${'a'.repeat(60)}`, `https://${'a'.repeat(55)}:8443`],
  },
  LISTEN_HOST: { good: itself('127.0.0.1', '0.0.0.0', '::', '::1'), bad: ['localhost', '127.0.0.1:80', '*'] },
  VERCEL_PROJECT_PRODUCTION_URL: {
    field: 'PUBLIC_URL',
    good: { 'payroll.vercel.app': 'https://payroll.vercel.app' },
    bad: badHosts,
  },
  VERCEL_ENV: { field: 'PUBLIC_URL', good: { production: 'http://localhost:3000' }, bad: [] },
  VERCEL_BRANCH_URL: preview,
  VERCEL_URL: preview,
  FRONTEND_URL: {
    good: { 'https://pay.example/app/': 'https://pay.example/app', ...itself('http://localhost:5173') },
    bad: ['pay.example', 'javascript:alert(1)', 'https://pay.example/?next=', 'https://pay.example/#/app'],
  },
  CORS_ORIGINS: {
    good: { 'https://a.example, http://localhost:5173/ ,': ['https://a.example', 'http://localhost:5173'] },
    bad: [...badOrigins, '*', ',', 'https://a.example,b.example'],
  },
  PORT: port,
  COMMIT: anyText,
  VERCEL_GIT_COMMIT_SHA: anyText,
  DATA_DIR: anyText,
  DATABASE_URL: database,
  VERCEL: {
    beside: {
      DATABASE_URL: 'postgres://h/d',
      SESSION_SECRET: 'a secret of thirty-two bytes, or more',
      PUBLIC_URL: 'https://payroll.example',
    },
    good: itself('1'),
    bad: [],
  },
  POSTGRES_URL: { ...database, field: 'DATABASE_URL' },
  STELLAR_NETWORK: { good: itself('local', 'testnet'), bad: ['public', 'mainnet', 'Testnet', 'futurenet'] },
  STELLAR_RPC_URL: {
    good: { 'http://localhost:8000/rpc/': 'http://localhost:8000/rpc' },
    bad: ['localhost:8000', 'ws://localhost', '//localhost'],
  },
  CONFIDENTIAL_TOKEN: { good: itself(token), bad: [address, token.slice(1), seed] },
  SESSION_SECRET: { good: itself('x'.repeat(32), 'é'.repeat(16)), bad: ['x'.repeat(31), 'hunter2'] },
  SESSION_TTL: { good: { 60: 60, 86400: 86_400 }, bad: ['59', '86401', '1h', '3600.5'] },
  SEP10_SEED: secretSeed,
  SPONSOR_SEED: secretSeed,
  BRIDGE_VAULT_ADDRESS: {
    good: itself(token, address),
    bad: [token.slice(1), seed, 'none', `${token},${otherToken}`],
  },
  FAUCET_SEED: secretSeed,
  FAUCET_AMOUNT: {
    good: { '0.0000001': 1n, 25: 25_0000000n, '999999999999.9999999': 999_999_999_999_9999999n },
    bad: ['0', '0.0', '-1', '1.00000000', '1e3', '.5', '1,5', '1000000000000', 'unlimited'],
  },
  FAUCET_COOLDOWN: { good: { 0: 0, 31536000: 31_536_000 }, bad: ['-1', '31536001', '1h', '0.5'] },
  ARCHIVE_URLS: {
    good: {
      'https://a.example/api/archive/, http://localhost:3000/api/archive': [
        'https://a.example/api/archive',
        'http://localhost:3000/api/archive',
      ],
    },
    bad: ['a.example', 'ftp://a.example', ','],
  },
  CHANNEL_SEEDS: {
    good: { [`${seed}, ${otherSeed}`]: [seed, otherSeed] },
    bad: [...badSeeds, `${seed};${otherSeed}`, `${seed},${token}`, ','],
  },
  SPONSOR_CONTRACTS: {
    good: { [`${token},${otherToken}`]: [token, otherToken], none: [] },
    bad: [`${token},none`, seed, ',', 'NONE', '*'],
  },
  SPONSOR_FUNCTIONS: {
    good: { 'transfer, confidential_transfer': ['transfer', 'confidential_transfer'] },
    bad: ['*', 'a b', 'x'.repeat(33), ','],
  },
  SPONSOR_CALLS: {
    good: { 'merge, register': ['merge', 'register'], none: [] },
    bad: ['confidential_transfer', 'merge,none', ',', 'NONE', '*'],
  },
  SPONSOR_CALLS_BUDGET: stroops,
  AUDITOR_ID: { good: { 0: 0, 4294967295: 4_294_967_295 }, bad: ['-1', '4294967296', '0x1', 'a'] },
  SPONSOR_MAX_FEE: stroops,
  SPONSOR_QUOTA_TRANSFERS: { good: { 0: 0, 1000000000: 1_000_000_000 }, bad: ['-1', '1000000001', 'none', '1e9'] },
  SPONSOR_QUOTA_STROOPS: stroops,
  SPONSOR_DAILY_BUDGET: stroops,
  TRANSFER_WAIT: { good: { 1: 1, 600: 600 }, bad: ['0', '601', '45s'] },
  IDP_ISSUER: {
    beside: { IDP_AUDIENCE: 'payroll' },
    good: itself('https://login.example/', 'http://127.0.0.1:9000'),
    bad: ['login.example', 'http://login.example', 'http://localhost.evil.example'],
  },
  IDP_AUDIENCE: { beside: { IDP_ISSUER: 'https://login.example' }, ...anyText },
  IDP_CLIENT_ID: { beside: provider, ...anyText },
  IDP_JWKS_URL: {
    beside: { ...provider, IDP_ISSUER: 'login.example' },
    good: itself('https://login.example/keys/', 'http://localhost:9000/jwks'),
    bad: ['/jwks', 'http://login.example/keys', 'ftp://localhost/keys', 'data:application/json,{}'],
  },
  IDP_ALGS: { good: { 'PS512,EdDSA': ['PS512', 'EdDSA'] }, bad: ['HS256', 'none', 'RS256,HS256', 'rs256', ','] },
  IDP_EMAIL_CLAIM: anyText,
  INVITE_LIMIT: { good: { 1: 1, 100000: 100_000 }, bad: ['0', '100001', '1.5', 'many'] },
  SMTP_URL: {
    beside: { MAIL_FROM: 'pay@pay.example' },
    good: itself('smtps://user:hunter2@mail.example', 'smtp://127.0.0.1:2525'),
    bad: ['mail.example:25', 'http://mail.example', 'smtp://', 'smtp:hunter2'],
  },
  MAIL_FROM: {
    beside: { SMTP_URL: 'smtp://mail.example' },
    good: itself('pay@pay.example', 'Pay Röll <pay@pay.example>'),
    bad: [
      'payroll',
      'a@pay.example, b@pay.example',
      'Pay\r\nBcc: all@pay.example <pay@pay.example>',
      'a b@pay.example',
    ],
  },
  BATCH_ENABLED: { good: { true: true, false: false }, bad: ['yes', '1', 'TRUE', 'on'] },
  RUN_CHANNELS: { good: { 1: 1, 100: 100 }, bad: ['0', '101', 'all'] },
  RELAY_PORT: port,
  RELAY_PUBLIC_KEY: {
    good: { [jwk(relayPublic)]: relayPublic, [jwk({ ...relayKey, kid: 'x' })]: relayPublic },
    bad: [
      'hunter2',
      jwk({ x: relayPublic.x }),
      jwk({ ...relayPublic, crv: 'P-384' }),
      jwk({ ...relayPublic, y: 'hunter2' }),
    ],
  },
  RELAY_PRIVATE_KEY: {
    good: { [jwk(relayKey)]: relayKey },
    bad: [jwk(relayPublic), jwk({ ...relayKey, d: 'hunter2' }), `${relayKey.d}`],
  },
  PROVER_CIRCUITS: anyText,
  PROVER_CRS: anyText,
  PROVER_THREADS: { good: { 1: 1, 32: 32 }, bad: ['0', '33', 'all'] },
  RELAY_PROVER: anyText,
  CRON_SECRET: { good: itself('x'.repeat(16)), bad: ['x'.repeat(15), 'hunter2'] },
  METRICS_TOKEN: { good: itself('x'.repeat(16)), bad: ['x'.repeat(15), 'hunter2'] },
  TRUST_PROXY: { good: { 0: 0, 2: 2 }, bad: ['-1', '11', 'true', '1.5'] },
  OPERATOR_PASSWORD: { good: itself('correct horse'), bad: ['hunter2'] },
  DEVNET_PORT: port,
  DEVNET_PROOFS: { good: itself('stand-in'), bad: ['none', 'REAL'] },
  DEVNET_PROFILE: { good: itself('testnet'), bad: ['fast', 'Testnet'] },
  KEEP_ALIVE_TIMEOUT: { good: { 75000: 75_000 }, bad: ['0', '999', 'long'] },
  DEVNET_PROTOCOL: { good: itself('30'), bad: ['29', 'thirty'] },
  DEVNET_LAG: { good: { 2: [2], '0, 3': [0, 3] }, bad: ['-1', '101', 'two', ','] },
  DEVNET_HISTORY_LEDGERS: { good: { 100: 100, 120960: 120_960 }, bad: ['0', '99', '200001', 'all'] },
  DEVNET_CLOSE_MS: { good: { 50: 50, 20000: 20_000 }, bad: ['49', '20001', '1s'] },
  DEVNET_PASSPHRASE: { good: itself(Networks.TESTNET), bad: [Networks.PUBLIC] },
}

/** The error that `read` throws, which must be a ConfigurationError. */
function refusal(read: () => unknown): ConfigurationError {
  try {
    read()
  } catch (error) {
    if (error instanceof ConfigurationError) return error
    throw error
  }
  throw new Error('no error was thrown')
}

test('has a case for every variable', () => {
  expect(Object.keys(CASES).sort()).toEqual([...VARIABLE_NAMES].sort())
})

describe.each(VARIABLE_NAMES)('%s', (name) => {
  const cases = CASES[name]
  const field = cases.field ?? (name as keyof Environment)

  test('treats an empty value as absent, except for a list that then allows nothing', () => {
    const emptied = name === 'SPONSOR_CONTRACTS' || name === 'SPONSOR_CALLS' ? [] : readEnvironment({})[field]
    expect(readEnvironment({ [name]: '' })[field]).toEqual(emptied)
  })

  test.each(Object.entries(cases.good))('accepts %s', (value, read) => {
    expect(readEnvironment({ ...cases.beside, [name]: value })[field]).toEqual(read)
  })

  test.each(cases.bad)('rejects %s with the variable’s name and without the value', (value) => {
    const { variable, message } = refusal(() => readEnvironment({ ...cases.beside, [name]: value }))
    expect(variable).toBe(name)
    expect(message.startsWith(`${name}: `)).toBe(true)
    // A short value can occur in a message by chance.
    if (value.length > 4) expect(message.slice(name.length)).not.toContain(value)
    expect(message).not.toMatch(/hunter2|S[A-Z2-7]{20}/)
  })
})

test('prefers PUBLIC_URL to the host set by Vercel, and uses PORT in the default', () => {
  const variables = { VERCEL_PROJECT_PRODUCTION_URL: 'payroll.vercel.app', PORT: '4000' }
  expect(readEnvironment({ ...variables, PUBLIC_URL: 'https://payroll.example' }).PUBLIC_URL).toBe(
    'https://payroll.example',
  )
  expect(readEnvironment(variables).PUBLIC_URL).toBe('https://payroll.vercel.app')
  expect(readEnvironment({ PORT: '4000' }).PUBLIC_URL).toBe('http://localhost:4000')
})

test('requires a PUBLIC_URL if Vercel’s host is too long for SEP-10', () => {
  const { variable } = refusal(() => readEnvironment({ VERCEL_PROJECT_PRODUCTION_URL: `${'a'.repeat(60)}.vercel.app` }))
  expect(variable).toBe('PUBLIC_URL')
})

describe('on Vercel', () => {
  const PRODUCTION = 'payroll.example'
  const DEPLOYMENT = 'payroll-3f9a1c2be-us.vercel.app'
  const BRANCH = 'payroll-git-next-us.vercel.app'
  const long = (name: string) => `${name}-${'x'.repeat(50)}.vercel.app`
  const locate = (variables: Record<string, string>) =>
    readEnvironment({
      VERCEL_PROJECT_PRODUCTION_URL: PRODUCTION,
      VERCEL_BRANCH_URL: BRANCH,
      VERCEL_URL: DEPLOYMENT,
      ...variables,
    }).PUBLIC_URL

  test.each<[Record<string, string>, string]>([
    [{}, PRODUCTION],
    [{ VERCEL_ENV: 'production' }, PRODUCTION],
    [{ VERCEL_ENV: 'development', VERCEL_URL: 'localhost:3000' }, PRODUCTION],
    [{ VERCEL_ENV: 'preview' }, BRANCH],
    // A deployment from the command line has no branch.
    [{ VERCEL_ENV: 'preview', VERCEL_BRANCH_URL: '' }, DEPLOYMENT],
    [{ VERCEL_ENV: 'preview', VERCEL_BRANCH_URL: long('branch') }, DEPLOYMENT],
    [{ VERCEL_ENV: 'preview', PUBLIC_URL: 'https://preview.example' }, 'preview.example'],
  ])('derives from %j the address %s', (variables, host) => {
    expect(locate(variables)).toBe(`https://${host}`)
  })

  test('never uses the production host for a preview', () => {
    expect(locate({ VERCEL_ENV: 'preview', VERCEL_BRANCH_URL: '', VERCEL_URL: '' })).toBe('http://localhost:3000')
    const deployed = { VERCEL: '1', VERCEL_ENV: 'preview', DATABASE_URL: 'postgres://h/d' }
    const { variable } = refusal(() => locate({ ...deployed, VERCEL_BRANCH_URL: '', VERCEL_URL: '' }))
    expect(variable).toBe('PUBLIC_URL')
    const tooLong = { VERCEL_BRANCH_URL: long('branch'), VERCEL_URL: long('deployment') }
    expect(refusal(() => locate({ VERCEL_ENV: 'preview', ...tooLong })).variable).toBe('PUBLIC_URL')
  })
})

test('prefers DATABASE_URL to POSTGRES_URL', () => {
  const both = { DATABASE_URL: 'postgres://h/ours', POSTGRES_URL: 'postgres://h/theirs' }
  expect(readEnvironment(both).DATABASE_URL).toBe('postgres://h/ours')
})

test.each<[Record<string, string>, string]>([
  [{ IDP_ISSUER: 'https://login.example' }, 'IDP_AUDIENCE'],
  [{ IDP_AUDIENCE: 'payroll' }, 'IDP_ISSUER'],
  [{ IDP_JWKS_URL: 'https://login.example/keys' }, 'IDP_ISSUER'],
  [{ IDP_ISSUER: '', IDP_AUDIENCE: 'payroll' }, 'IDP_ISSUER'],
  [{ IDP_CLIENT_ID: 'web' }, 'IDP_CLIENT_ID'],
  // An issuer that is only a name has no page to redirect a browser to.
  [{ ...provider, IDP_ISSUER: 'a name', IDP_JWKS_URL: 'https://a.example/k', IDP_CLIENT_ID: 'web' }, 'IDP_CLIENT_ID'],
  [{ SMTP_URL: 'smtp://mail.example' }, 'MAIL_FROM'],
  [{ MAIL_FROM: 'pay@pay.example' }, 'SMTP_URL'],
])('rejects the incomplete settings %j and names %s', (variables, name) => {
  expect(refusal(() => readEnvironment(variables)).variable).toBe(name)
})

test('rejects a public key that does not match the private key', () => {
  const mixed = { RELAY_PUBLIC_KEY: JSON.stringify(publicHalf(generateRelayKey())) }
  const variables = { ...mixed, RELAY_PRIVATE_KEY: JSON.stringify(relayKey) }
  expect(refusal(() => readEnvironment(variables)).variable).toBe('RELAY_PUBLIC_KEY')
})

describe('the environment of this process', () => {
  afterEach(() => {
    vi.unstubAllEnvs()
    // Later files must not see the values read here.
    vi.resetModules()
  })

  test('is read on first use and cached', async () => {
    vi.resetModules()
    const { environment } = await import('#lib/config/environment.ts')
    vi.stubEnv('SESSION_TTL', '120')
    expect(environment().SESSION_TTL).toBe(120)
    vi.stubEnv('SESSION_TTL', '240')
    expect(environment().SESSION_TTL).toBe(120)
  })
})
