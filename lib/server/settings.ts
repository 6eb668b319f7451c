import { Keypair, Networks } from '@stellar/stellar-sdk'
import type { ProviderSettings } from '#lib/auth/oidc/provider.ts'
import { composeOperator, type OperatorSettings } from '#lib/auth/operator.ts'
import type { Sep10Settings } from '#lib/auth/sep10/challenge.ts'
import type { SessionSettings } from '#lib/auth/session.ts'
import { deriveKey } from '#lib/auth/shared-secret.ts'
import { ConfigurationError, type Environment } from '#lib/config/environment.ts'
import { embedsLedger, listenHostOf } from '#lib/config/listen-host.ts'
import { type PrivateRelayKey, type PublicRelayKey, publicHalf } from '#lib/config/relay-key.ts'
import type { InviteSettings } from '#lib/directory/contractors/invite-token.ts'
import type { MailSettings } from '#lib/directory/mail.ts'
import type { FaucetRules } from '#lib/faucet/faucet.ts'
import { type ProverSettings, proverSettings } from '#lib/prover/node/loading.ts'
import type { SponsorRules } from '#lib/transfers/policy.ts'
import type { QuotaLimits } from '#lib/transfers/quota.ts'
import { channelSeeds, relayKeys } from './relay-document.ts'

/** The keys and addresses that the embedded parts provide. A variable for the same value takes precedence. */
export interface Embedded {
  sessionSecret?: string
  sponsorSeed?: string
  faucetSeed?: string
  channelSeeds?: string[]
  relayKey?: PrivateRelayKey
  rpcUrl?: string
  token?: string
  provider?: ProviderSettings
}

/** The complete configuration, parsed. Undefined parts are not configured, and their features are off. */
export interface Settings {
  publicUrl: string
  /** the employer's application, if the deployment names it */
  frontendUrl: string | undefined
  /** Whether the database is PGlite in this process. */
  embedsDatabase: boolean
  network: { name: 'local' | 'testnet'; passphrase: string; rpcUrl: string; pollMs: number }
  sessions: SessionSettings
  sep10: Sep10Settings
  provider: ProviderSettings | undefined
  /**
   * The issuer at which the embedded ledger issues access tokens for any email; undefined if a provider is configured.
   */
  testIssuer: string | undefined
  /** Archives of the token's events that relays read in addition to the service's, without `/v1`. */
  archiveUrls: readonly string[]
  /** The contract of the confidential token. */
  token: string | undefined
  invites: InviteSettings
  /** the tokens that stop mails at a payment, and the page that they open */
  paymentMails: { secret: Uint8Array; page: string }
  mail: MailSettings | undefined
  /** `secret` derives the secrets of webhooks; `allowsLoopback` is whether they may be on this computer, also without TLS. */
  webhooks: { secret: Uint8Array; allowsLoopback: boolean }
  /** The address whose balance of the token's asset is shown, and that token. */
  vault: { address: string; token: string } | undefined
  faucet: { keypair: Keypair; token: string; rules: FaucetRules } | undefined
  sponsor: { keypair: Keypair; rules: SponsorRules; limits: QuotaLimits } | undefined
  /** The sponsored calls other than transfers, by function, and the auditor under which accounts register. */
  calls: { functions: ReadonlySet<string>; auditorId: number }
  /** How long a request waits for the ledger, in milliseconds. */
  transferWait: number
  /** Whether batch jobs are accepted, and the key that seals their amounts. */
  batch: { key: PublicRelayKey } | undefined
  /** How many channels a run may be divided among. */
  runChannels: number
  /** The settings of a relay in this process: its key, its channels, its prover. */
  relay:
    | { key: PrivateRelayKey; channels: Keypair[]; token: string; prover: ProverSettings; host?: string; port: number }
    | undefined
  /** The Bearer token of a scheduler. */
  cronSecret: string | undefined
  /** The Bearer token of Prometheus. */
  metricsToken: string | undefined
  /** How the operator signs in to the dashboard; undefined: the dashboard is closed. */
  operator: OperatorSettings | undefined
}

const TESTNET_RPC = 'https://soroban-testnet.stellar.org'

/**
 * Combines the environment and the values of the embedded parts. Pure.
 * @throws ConfigurationError
 */
export function composeSettings(environment: Environment, embedded: Embedded = {}): Settings {
  const network = composeNetwork(environment, embedded)
  const secret = environment.SESSION_SECRET ?? embedded.sessionSecret
  if (!secret) {
    throw new ConfigurationError('SESSION_SECRET', 'is needed: only the embedded database generates one')
  }
  const host = new URL(environment.PUBLIC_URL).host
  const token = environment.CONFIDENTIAL_TOKEN ?? embedded.token
  const signer = environment.SEP10_SEED ? Keypair.fromSecret(environment.SEP10_SEED) : deriveSigner(secret)
  const controlled = collectAddresses(environment, embedded, signer)
  return {
    publicUrl: environment.PUBLIC_URL,
    frontendUrl: environment.FRONTEND_URL,
    embedsDatabase: environment.DATABASE_URL === undefined,
    network,
    sessions: {
      secret,
      issuer: environment.PUBLIC_URL,
      audience: `${environment.PUBLIC_URL}/api`,
      ttl: environment.SESSION_TTL,
    },
    sep10: { signer, networkPassphrase: network.passphrase, homeDomain: host, webAuthDomain: host },
    provider: composeProvider(environment) ?? embedded.provider,
    testIssuer: composeProvider(environment) ? undefined : embedded.provider?.issuer,
    token,
    archiveUrls: environment.ARCHIVE_URLS,
    invites: {
      secret: deriveKey(secret, 'invite tokens'),
      page: `${environment.FRONTEND_URL ?? environment.PUBLIC_URL}/invite/`,
      daily: environment.INVITE_LIMIT,
    },
    paymentMails: { secret: deriveKey(secret, 'payment mails'), page: `${environment.PUBLIC_URL}/mail/` },
    mail: composeMail(environment),
    webhooks: { secret: deriveKey(secret, 'webhook secrets'), allowsLoopback: embedsLedger(environment) },
    // By default the vault is the token's contract, which contains the assets behind all confidential balances.
    vault: token === undefined ? undefined : { address: environment.BRIDGE_VAULT_ADDRESS ?? token, token },
    faucet: composeFaucet(environment, embedded, token),
    sponsor: composeSponsor(environment, embedded, controlled),
    calls: { functions: new Set(environment.SPONSOR_CALLS), auditorId: environment.AUDITOR_ID },
    transferWait: environment.TRANSFER_WAIT * 1000,
    batch: composeBatch(environment, embedded, token),
    runChannels: environment.RUN_CHANNELS,
    relay: composeRelay(environment, embedded, token),
    cronSecret: environment.CRON_SECRET,
    metricsToken: environment.METRICS_TOKEN,
    operator: composeOperator(secret, {
      password: environment.OPERATOR_PASSWORD,
      embeddedSecret: embedded.sessionSecret,
    }),
  }
}

function composeNetwork(environment: Environment, embedded: Embedded): Settings['network'] {
  const local = environment.STELLAR_NETWORK === 'local'
  const rpcUrl = environment.STELLAR_RPC_URL ?? (local ? embedded.rpcUrl : TESTNET_RPC)
  if (!rpcUrl) throw new ConfigurationError('STELLAR_RPC_URL', 'is needed without an embedded ledger')
  return {
    name: environment.STELLAR_NETWORK,
    passphrase: local ? environment.DEVNET_PASSPHRASE : Networks.TESTNET,
    rpcUrl,
    // The embedded ledger closes every second, testnet every five.
    pollMs: local ? 250 : 1000,
  }
}

/** A signing key for SEP-10 challenges and nothing else: it never owns an account and never signs an envelope. */
function deriveSigner(secret: string): Keypair {
  return Keypair.fromRawEd25519Seed(deriveKey(secret, 'SEP-10 signing key'))
}

function composeMail({ SMTP_URL, MAIL_FROM }: Environment): MailSettings | undefined {
  return SMTP_URL && MAIL_FROM ? { url: SMTP_URL, from: MAIL_FROM } : undefined
}

function composeProvider(environment: Environment): ProviderSettings | undefined {
  const { IDP_ISSUER, IDP_AUDIENCE } = environment
  if (!IDP_ISSUER || !IDP_AUDIENCE) return undefined
  return {
    issuer: IDP_ISSUER,
    audience: IDP_AUDIENCE,
    jwksUrl: environment.IDP_JWKS_URL,
    algorithms: environment.IDP_ALGS,
    emailClaim: environment.IDP_EMAIL_CLAIM,
    clientId: environment.IDP_CLIENT_ID,
  }
}

function composeFaucet(environment: Environment, embedded: Embedded, token: string | undefined): Settings['faucet'] {
  const seed = environment.FAUCET_SEED ?? embedded.faucetSeed
  if (!seed || !token) return undefined
  return {
    keypair: Keypair.fromSecret(seed),
    token,
    rules: {
      amount: environment.FAUCET_AMOUNT,
      coolDown: environment.FAUCET_COOLDOWN,
      patience: environment.TRANSFER_WAIT * 1000,
    },
  }
}

function composeSponsor(
  environment: Environment,
  embedded: Embedded,
  controlled: ReadonlySet<string>,
): Settings['sponsor'] {
  const seed = environment.SPONSOR_SEED ?? embedded.sponsorSeed
  if (!seed) return undefined
  const token = environment.CONFIDENTIAL_TOKEN ?? embedded.token
  return {
    keypair: Keypair.fromSecret(seed),
    rules: {
      token,
      contracts: new Set(environment.SPONSOR_CONTRACTS ?? (token ? [token] : [])),
      functions: new Set(environment.SPONSOR_FUNCTIONS),
      maxFee: environment.SPONSOR_MAX_FEE,
      controlled,
    },
    limits: {
      transfersPerAccount: environment.SPONSOR_QUOTA_TRANSFERS,
      stroopsPerAccount: environment.SPONSOR_QUOTA_STROOPS,
      dailyBudget: environment.SPONSOR_DAILY_BUDGET,
      callsBudget: environment.SPONSOR_CALLS_BUDGET ?? environment.SPONSOR_DAILY_BUDGET / 4n,
    },
  }
}

function composeBatch(environment: Environment, embedded: Embedded, token: string | undefined): Settings['batch'] {
  const own = environment.RELAY_PRIVATE_KEY ?? embedded.relayKey
  const key = environment.RELAY_PUBLIC_KEY ?? (own && publicHalf(own))
  const enabled = environment.BATCH_ENABLED ?? embedded.relayKey !== undefined
  // Relays transfer a confidential token: without one a job would never end.
  return enabled && key && token ? { key } : undefined
}

function composeRelay(environment: Environment, embedded: Embedded, token: string | undefined): Settings['relay'] {
  const keys = relayKeys(environment, embedded)
  if (!keys || !token) return undefined
  const host = listenHostOf(environment)
  return { ...keys, token, prover: proverSettings(environment), ...(host && { host }), port: environment.RELAY_PORT }
}

/**
 * The controlled addresses: the addresses of all keys of the service. Each key has one role, since two roles on one
 * account would use up each other's sequence numbers. The sponsor pays for no transaction that involves one of these
 * addresses.
 * @throws ConfigurationError for a key with two roles, even without a sponsor
 */
function collectAddresses(environment: Environment, embedded: Embedded, signer: Keypair): ReadonlySet<string> {
  const seeds: [variable: string, seed: string | undefined][] = [
    ['SPONSOR_SEED', environment.SPONSOR_SEED ?? embedded.sponsorSeed],
    ['SEP10_SEED', signer.secret()],
    ['FAUCET_SEED', environment.FAUCET_SEED ?? embedded.faucetSeed],
    ...channelSeeds(environment, embedded).map((seed): [string, string] => ['CHANNEL_SEEDS', seed]),
  ]
  const owners = new Map<string, string>()
  for (const [variable, seed] of seeds) {
    if (!seed) continue
    const address = Keypair.fromSecret(seed).publicKey()
    const owner = owners.get(address)
    if (owner) throw new ConfigurationError(variable, `contains a key that ${owner} already has`)
    owners.set(address, variable)
  }
  return new Set(owners.keys())
}
