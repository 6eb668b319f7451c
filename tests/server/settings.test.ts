import { readFileSync } from 'node:fs'
import { Keypair, Networks, StrKey } from '@stellar/stellar-sdk'
import { describe, expect, test } from 'vitest'
import { ConfigurationError, readEnvironment, VARIABLE_NAMES } from '#lib/config/environment.ts'
import { generateRelayKey, publicHalf } from '#lib/config/relay-key.ts'
import { composeSettings, type Embedded } from '#lib/server/settings.ts'

const keypair = (byte: number) => Keypair.fromRawEd25519Seed(new Uint8Array(32).fill(byte))
const token = StrKey.encodeContract(new Uint8Array(32).fill(1))
const otherToken = StrKey.encodeContract(new Uint8Array(32).fill(2))
const SECRET = 'a secret of the settings tests, 32 bytes and more'

/** Every field, so that this file does not compile until a new field is added here. */
const EMBEDDED: Required<Embedded> = {
  sessionSecret: `${SECRET}, embedded`,
  sponsorSeed: keypair(100).secret(),
  faucetSeed: keypair(101).secret(),
  channelSeeds: [keypair(102).secret(), keypair(103).secret()],
  relayKey: generateRelayKey(),
  rpcUrl: 'http://localhost:8000/rpc',
  token,
  provider: { issuer: 'http://localhost:8000/idp', audience: 'embedded', algorithms: ['ES256'], emailClaim: 'email' },
}

const compose = (variables: Record<string, string> = {}, embedded: Embedded = EMBEDDED) =>
  composeSettings(readEnvironment(variables), embedded)
const refusedVariable = (variables: Record<string, string>, embedded?: Embedded) => {
  try {
    compose(variables, embedded)
  } catch (error) {
    if (error instanceof ConfigurationError) return error.variable
    throw error
  }
  return undefined
}

describe('the embedded defaults', () => {
  test('use a configured database instead of the embedded one', () => {
    expect(compose({ DATABASE_URL: 'postgres://h/d' }).embedsDatabase).toBe(false)
    expect(compose({ POSTGRES_URL: 'postgres://h/d' }).embedsDatabase).toBe(false)
  })

  test('take every value from the embedded parts', () => {
    const settings = compose()
    const limits = {
      transfersPerAccount: 500,
      stroopsPerAccount: 1_000_000_000n,
      dailyBudget: 10_000_000_000n,
      callsBudget: 2_500_000_000n,
    }
    const issuer = 'http://localhost:3000'
    expect(settings).toMatchObject({
      publicUrl: 'http://localhost:3000',
      embedsDatabase: true,
      network: { name: 'local', passphrase: Networks.STANDALONE, rpcUrl: EMBEDDED.rpcUrl, pollMs: 250 },
      sessions: { secret: EMBEDDED.sessionSecret, issuer, audience: `${issuer}/api`, ttl: 3600 },
      sep10: { networkPassphrase: Networks.STANDALONE, homeDomain: 'localhost:3000', webAuthDomain: 'localhost:3000' },
      provider: EMBEDDED.provider,
      sponsor: { limits },
      calls: { functions: new Set(['register', 'merge', 'set_spender', 'revoke_spender']), auditorId: 0 },
    })
    expect(settings.sponsor?.keypair.secret()).toBe(EMBEDDED.sponsorSeed)
    expect(settings.sponsor?.rules).toMatchObject({
      contracts: new Set([token]),
      functions: new Set(['confidential_transfer']),
      maxFee: 5_000_000n,
    })
  })
})

describe('the environment overrides the embedded parts', () => {
  test.each<[Record<string, string>, (settings: ReturnType<typeof compose>) => unknown, unknown]>([
    [{ SESSION_SECRET: SECRET }, ({ sessions }) => sessions.secret, SECRET],
    [{ SESSION_TTL: '60' }, ({ sessions }) => sessions.ttl, 60],
    [{ PUBLIC_URL: 'https://p.example:8443' }, ({ sep10 }) => sep10.homeDomain, 'p.example:8443'],
    [{ STELLAR_RPC_URL: 'http://rpc.example' }, ({ network }) => network.rpcUrl, 'http://rpc.example'],
    [
      { DEVNET_PASSPHRASE: 'Mine' },
      ({ network, sep10 }) => [network.passphrase, sep10.networkPassphrase],
      ['Mine', 'Mine'],
    ],
    [{ SEP10_SEED: keypair(1).secret() }, ({ sep10 }) => sep10.signer.secret(), keypair(1).secret()],
    [{ SPONSOR_SEED: keypair(1).secret() }, ({ sponsor }) => sponsor?.keypair.secret(), keypair(1).secret()],
    [{ CONFIDENTIAL_TOKEN: otherToken }, ({ sponsor }) => sponsor?.rules.contracts, new Set([otherToken])],
    [{ SPONSOR_FUNCTIONS: 'f,g' }, ({ sponsor }) => sponsor?.rules.functions, new Set(['f', 'g'])],
    [{ SPONSOR_CALLS_BUDGET: '7' }, ({ sponsor }) => sponsor?.limits.callsBudget, 7n],
    [{ SPONSOR_CALLS: '', AUDITOR_ID: '4' }, ({ calls }) => calls, { functions: new Set(), auditorId: 4 }],
    [{ SPONSOR_MAX_FEE: '7' }, ({ sponsor }) => sponsor?.rules.maxFee, 7n],
    [
      { SPONSOR_QUOTA_TRANSFERS: '1', SPONSOR_QUOTA_STROOPS: '2', SPONSOR_DAILY_BUDGET: '8' },
      ({ sponsor }) => sponsor?.limits,
      { transfersPerAccount: 1, stroopsPerAccount: 2n, dailyBudget: 8n, callsBudget: 2n },
    ],
    [{ TRANSFER_WAIT: '9' }, ({ transferWait }) => transferWait, 9_000],
    [{ FAUCET_SEED: keypair(1).secret() }, ({ faucet }) => faucet?.keypair.secret(), keypair(1).secret()],
    [{ CONFIDENTIAL_TOKEN: otherToken }, ({ faucet }) => faucet?.token, otherToken],
    [
      { FAUCET_AMOUNT: '2.5', FAUCET_COOLDOWN: '60', TRANSFER_WAIT: '9' },
      ({ faucet }) => faucet?.rules,
      { amount: 25_000_000n, coolDown: 60, patience: 9_000 },
    ],
    [{ CONFIDENTIAL_TOKEN: otherToken }, ({ vault }) => vault, { address: otherToken, token: otherToken }],
    [{ BRIDGE_VAULT_ADDRESS: otherToken }, ({ vault }) => vault, { address: otherToken, token }],
    [
      { IDP_ISSUER: 'https://login.example', IDP_AUDIENCE: 'us', IDP_ALGS: 'EdDSA', IDP_EMAIL_CLAIM: 'mail' },
      ({ provider }) => provider,
      {
        issuer: 'https://login.example',
        audience: 'us',
        jwksUrl: undefined,
        algorithms: ['EdDSA'],
        emailClaim: 'mail',
      },
    ],
  ])('%j', (variables, pick, expected) => {
    expect(pick(compose(variables))).toEqual(expected)
    expect(pick(compose())).not.toEqual(expected)
  })

  test('uses testnet’s passphrase and RPC, and polls once a second', () => {
    const { network } = compose({ STELLAR_NETWORK: 'testnet', SESSION_SECRET: SECRET }, {})
    expect(network).toEqual({
      name: 'testnet',
      passphrase: Networks.TESTNET,
      rpcUrl: 'https://soroban-testnet.stellar.org',
      pollMs: 1000,
    })
  })
})

describe('a missing variable', () => {
  test('requires a session secret without an embedded database', () => {
    expect(refusedVariable({ STELLAR_NETWORK: 'testnet' }, {})).toBe('SESSION_SECRET')
  })

  test('requires an RPC without an embedded ledger', () => {
    expect(refusedVariable({ SESSION_SECRET: SECRET }, {})).toBe('STELLAR_RPC_URL')
  })

  test('requires seed and token for a faucet, and the token for a vault', () => {
    const testnet = (more: Record<string, string>) =>
      compose({ STELLAR_NETWORK: 'testnet', SESSION_SECRET: SECRET, ...more }, {})
    expect(testnet({ FAUCET_SEED: keypair(1).secret() }).faucet).toBeUndefined()
    expect(testnet({ CONFIDENTIAL_TOKEN: token }).faucet).toBeUndefined()
    expect(testnet({ FAUCET_SEED: keypair(1).secret(), CONFIDENTIAL_TOKEN: token }).faucet).toBeDefined()
    expect(testnet({ BRIDGE_VAULT_ADDRESS: token }).vault).toBeUndefined()
  })

  test('disables the feature of a missing key', () => {
    const settings = compose({ STELLAR_NETWORK: 'testnet', SESSION_SECRET: SECRET }, {})
    expect([settings.sponsor, settings.provider, settings.faucet, settings.vault]).toEqual(Array(4).fill(undefined))
  })
})

describe('the SEP-10 signer', () => {
  const signerOf = (secret: string) => compose({ SESSION_SECRET: secret }).sep10.signer

  test('is derived from the session secret only', () => {
    expect(signerOf(SECRET).publicKey()).toBe(signerOf(SECRET).publicKey())
    expect(compose({ SESSION_SECRET: SECRET, PORT: '4000' }).sep10.signer.publicKey()).toBe(
      signerOf(SECRET).publicKey(),
    )
    expect(signerOf(`${SECRET}.`).publicKey()).not.toBe(signerOf(SECRET).publicKey())
  })

  const raw = 'x'.repeat(32)
  const own = { SPONSOR_SEED: keypair(1), FAUCET_SEED: keypair(2), CHANNEL_SEEDS: keypair(3) }
  const seeds = Object.fromEntries(Object.entries(own).map(([name, key]) => [name, key.secret()]))
  test.each<[string, Record<string, string>]>([
    ['derived, with embedded keys', {}],
    ['derived, with configured keys', seeds],
    ['configured, with embedded keys', { SEP10_SEED: keypair(4).secret() }],
    ['configured, with configured keys', { ...seeds, SEP10_SEED: keypair(4).secret() }],
  ])('%s, differs from every other key of the service, and from the bytes of a secret', (_, variables) => {
    const { sep10, sponsor, faucet, relay, invites } = compose({ SESSION_SECRET: raw, ...variables })
    const others = [sponsor?.keypair, faucet?.keypair, ...(relay?.channels ?? [])].map((key) => key?.rawSecretKey())
    expect(others.length).toBe('CHANNEL_SEEDS' in variables ? 3 : 4)
    const secrets = [...others, Buffer.from(raw), invites.secret].map((bytes) =>
      Buffer.from(bytes ?? []).toString('hex'),
    )
    expect(secrets).not.toContain(Buffer.from(sep10.signer.rawSecretKey()).toString('hex'))
  })
})

describe('the deny set', () => {
  const seedVariables = VARIABLE_NAMES.filter((name) => /_SEEDS?$/.test(name))

  test('contains the address of every seed in the environment', () => {
    const variables: Record<string, string> = {}
    const expected = seedVariables.flatMap((name, position) => {
      const keys = name.endsWith('S') ? [keypair(10 + position), keypair(50 + position)] : [keypair(10 + position)]
      variables[name] = keys.map((key) => key.secret()).join(',')
      return keys.map((key) => key.publicKey())
    })
    expect(seedVariables.length).toBeGreaterThanOrEqual(4)
    expect([...(compose(variables).sponsor?.rules.controlled ?? [])].sort()).toEqual(expected.sort())
  })

  test('contains the address of every embedded seed and of the derived signer', () => {
    const seeds = Object.values(EMBEDDED)
      .flat()
      .filter((value) => typeof value === 'string')
      .filter((value) => StrKey.isValidEd25519SecretSeed(value))
    const { sponsor, sep10 } = compose()
    const expected = [...seeds.map((seed) => Keypair.fromSecret(seed).publicKey()), sep10.signer.publicKey()]
    expect([...(sponsor?.rules.controlled ?? [])].sort()).toEqual(expected.sort())
  })

  test('covers every field of Embedded in these tests', () => {
    const source = readFileSync('lib/server/settings.ts', 'utf8')
    const [, body = ''] = source.match(/interface Embedded \{([^}]*)\}/) ?? []
    const fields = [...body.matchAll(/^ {2}(\w+)\??:/gm)].map(([, field]) => field)
    expect(fields.sort()).toEqual(Object.keys(EMBEDDED).sort())
  })

  test.each([
    [{ SPONSOR_SEED: 1, FAUCET_SEED: 1 }, 'FAUCET_SEED'],
    [{ SPONSOR_SEED: 1, CHANNEL_SEEDS: 1 }, 'CHANNEL_SEEDS'],
    [{ FAUCET_SEED: 1, CHANNEL_SEEDS: 1 }, 'CHANNEL_SEEDS'],
    [{ SPONSOR_SEED: 1, SEP10_SEED: 1 }, 'SEP10_SEED'],
    [{ SEP10_SEED: 1, FAUCET_SEED: 1 }, 'FAUCET_SEED'],
    [{ SEP10_SEED: 1, CHANNEL_SEEDS: 1 }, 'CHANNEL_SEEDS'],
    [{ SPONSOR_SEED: 101 }, 'FAUCET_SEED'],
  ])('rejects a key with two roles, %j, and names the variables', (bytes, variable) => {
    const entries = Object.entries(bytes).map(([name, byte]) => [name, keypair(byte).secret()])
    const seeds = Object.fromEntries(entries)
    expect(refusedVariable(seeds)).toBe(variable)
    if (seeds.SPONSOR_SEED) return
    const { sponsorSeed: _, ...withoutSponsor } = EMBEDDED
    expect(refusedVariable(seeds, withoutSponsor)).toBe(variable)
  })

  test('rejects a channel that is listed twice, with or without a sponsor', () => {
    const { sponsorSeed: _, ...withoutSponsor } = EMBEDDED
    const twice = { CHANNEL_SEEDS: `${keypair(1).secret()},${keypair(1).secret()}` }
    for (const embedded of [EMBEDDED, withoutSponsor]) expect(refusedVariable(twice, embedded)).toBe('CHANNEL_SEEDS')
  })
})

describe('the sponsored contracts', () => {
  const { token: _, ...tokenless } = EMBEDDED
  test.each<[Record<string, string>, string[], Embedded?]>([
    [{}, [token]],
    [{ SPONSOR_CONTRACTS: '' }, []],
    // The token is included only if it is listed.
    [{ SPONSOR_CONTRACTS: otherToken }, [otherToken]],
    [{ SPONSOR_CONTRACTS: 'none' }, []],
    [{}, [], tokenless],
  ])('%j: %j', (variables, contracts, embedded) => {
    expect(compose(variables, embedded).sponsor?.rules.contracts).toEqual(new Set(contracts))
  })
})

describe('the relay', () => {
  const other = generateRelayKey()
  const own = { RELAY_PRIVATE_KEY: JSON.stringify(other), CHANNEL_SEEDS: keypair(30).secret() }
  const bare = { SESSION_SECRET: SECRET, STELLAR_RPC_URL: 'http://rpc.example', CONFIDENTIAL_TOKEN: token }

  test('is embedded with its keys, and batch jobs are enabled', () => {
    const { batch, relay } = compose()
    expect(batch).toEqual({ key: publicHalf(EMBEDDED.relayKey) })
    expect(relay).toMatchObject({
      key: EMBEDDED.relayKey,
      token,
      port: 3100,
      prover: { network: 'local', module: undefined },
    })
    expect(relay?.channels.map((key) => key.secret())).toEqual(EMBEDDED.channelSeeds)
    expect(compose({ BATCH_ENABLED: 'false' }).batch).toBeUndefined()
  })

  test('is absent and batch jobs are disabled without an embedded ledger', () => {
    expect(compose(bare, {})).toMatchObject({ batch: undefined, relay: undefined })
    expect(compose({ ...bare, BATCH_ENABLED: 'true' }, {}).batch).toBeUndefined()
    expect(compose({ ...bare, ...own }, {}).batch).toBeUndefined()
    const tokenless = { ...bare, ...own, BATCH_ENABLED: 'true', CONFIDENTIAL_TOKEN: '' }
    expect(compose(tokenless, {})).toMatchObject({ batch: undefined, relay: undefined })
  })

  test('has the configured keys', () => {
    const { batch, relay } = compose({ ...bare, ...own, BATCH_ENABLED: 'true', RELAY_PROVER: 'a-prover' }, {})
    expect(batch?.key).toEqual(publicHalf(other))
    expect(relay).toMatchObject({ key: other, prover: { module: 'a-prover' } })
    expect(relay?.channels.map((key) => key.secret())).toEqual([own.CHANNEL_SEEDS])
  })

  test('runs elsewhere if only its public key is configured', () => {
    const { batch, relay } = compose({ RELAY_PUBLIC_KEY: JSON.stringify(publicHalf(other)) })
    expect([batch?.key, relay]).toEqual([publicHalf(other), undefined])
  })
})
