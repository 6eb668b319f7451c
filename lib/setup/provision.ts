import { randomBytes } from 'node:crypto'
import { Keypair } from '@stellar/stellar-sdk'
import { readEnvironment } from '#lib/config/environment.ts'
import { generateRelayKey, parsePrivateRelayKey, publicHalf } from '#lib/config/relay-key.ts'
import { CHANNEL_FUNDS } from '#lib/relay/setup.ts'
import { openNetwork } from '#lib/stellar/network.ts'
import { formatUnits } from '#lib/text/money.ts'
import { ensureXlm } from './accounts.ts'
import { type Provisioning, provisionChannels } from './channels.ts'
import { completeEnv, readVariables, type Section } from './env-file.ts'
import { type FaucetPlan, planFaucet, readFaucetFunds, tryFaucet } from './faucet.ts'
import { checkDeployment, type DeployedToken } from './token.ts'

const XLM = 10_000_000n
/** How many channels a new deployment gets unless it asks for another number. */
const DEFAULT_CHANNELS = 3

/** With the number of channels known. */
type Counted = Provisioning & { channels: number }

/**
 * Below this balance, in stroops, friendbot funds an account: the sponsor pays a day's fees, the faucet those of its
 * grants.
 */
const SPONSOR_XLM = 1_000n * XLM
const FAUCET_XLM = 100n * XLM
/**
 * A faucet that grants XLM is funded below `least` stroops and grants `amount` XLM, so that it can make many grants.
 */
const NATIVE_FAUCET = { least: 2_000n * XLM, amount: '100' }
/** The version of the confidential token that lib/wallet implements. */
const INTERFACE = '0.8.0'
/** The default passphrase of the embedded ledger. */
const LOCAL_PASSPHRASE = 'Standalone Network ; February 2017'

/**
 * Creates or checks the accounts that a service needs on the network of a deployment: sponsor, faucet and channels.
 * Idempotent. Resolves to the text of the environment file.
 * @throws ConfigurationError for an invalid document, key or file, before anything is changed; LedgerError
 */
export async function provision(input: Provisioning): Promise<string> {
  const { document, say } = input
  const { network: name, passphrase, rpcUrl } = document
  const network = openNetwork({ name, passphrase, rpcUrl, pollMs: name === 'local' ? 250 : 1000 })
  say(`network  ${name}, ${rpcUrl}`)
  const deployed = await checkDeployment(network, document)
  const { asset } = deployed.asset
  say(`token    ${deployed.token}, over ${asset.isNative() ? 'XLM' : `${asset.getCode()}:${asset.getIssuer()}`}`)
  if (document.interface && document.interface !== INTERFACE) {
    say(`         of version ${document.interface}: relays need ${INTERFACE} and may fail; everything else works`)
  }
  const existing = readVariables(input.envText)
  const channels = input.channels ?? (mergeSeeds(input, existing).length || DEFAULT_CHANNELS)
  const faucet = await planFaucet(network, deployed, input.keys.FAUCET_SEED ?? existing.FAUCET_SEED)
  const text = completeEnv(input.envText, composeSections({ ...input, channels }, deployed, faucet), {
    file: input.file,
    growing: ['CHANNEL_SEEDS'],
  })
  // Rejects settings that startup would reject, such as one key with two roles.
  const environment = readEnvironment(readVariables(text))
  const settings = input.services.composeSettings(environment)
  input.keep(text)
  const funder = { network, friendbotUrl: deployed.friendbotUrl }
  const sponsor = settings.sponsor?.keypair.publicKey() ?? ''
  say(`sponsor  ${sponsor}${(await ensureXlm(funder, sponsor, SPONSOR_XLM)) ? ', funded by friendbot' : ''}`)
  if ('none' in faucet) {
    say(`faucet   none: ${faucet.none}. /funding/faucet will return 501`)
  } else {
    const address = faucet.keypair.publicKey()
    const isFunded = await ensureXlm(funder, address, faucet.kind === 'native' ? NATIVE_FAUCET.least : FAUCET_XLM)
    await tryFaucet(network, deployed, faucet, environment.FAUCET_AMOUNT)
    const does = { issuer: 'mints', holder: 'grants from its balance', native: 'grants XLM' }[faucet.kind]
    say(`faucet   ${address}, ${does}${isFunded ? ', funded by friendbot' : ''}`)
  }
  const balance = 'none' in faucet ? undefined : await readFaucetFunds(network, deployed, faucet)
  const funds = shareOf(balance, channels)
  if (balance !== undefined) say(`faucet   has ${formatUnits(balance)}; each channel gets ${formatUnits(funds)}`)
  const databaseUrl = input.keys.DATABASE_URL
  const hasFaucet = !('none' in faucet)
  await provisionChannels({ ...input, channels, databaseUrl, environment, funder, deployed, hasFaucet, funds })
  return text
}

/** The grant of each channel, in base units. A faucet that cannot mint spends at most half of its balance on them. */
function shareOf(held: bigint | undefined, channels: number): bigint {
  if (held === undefined || channels === 0) return CHANNEL_FUNDS
  const share = held / BigInt(2 * channels)
  return share < CHANNEL_FUNDS ? share : CHANNEL_FUNDS
}

/** The lines of the environment. Keys come from the file, else from the environment, else they are generated. */
function composeSections(input: Counted, deployed: DeployedToken, faucet: FaucetPlan): Section[] {
  const { document, keys, channels } = input
  const existing = readVariables(input.envText)
  const { network, rpcUrl, passphrase, bridgeVault } = document
  const isNative = deployed.asset.asset.isNative()
  const sections: Section[] = [
    {
      heading: `The confidential token on ${network === 'local' ? 'a local network' : network}`,
      variables: {
        STELLAR_NETWORK: network,
        STELLAR_RPC_URL: existing.STELLAR_RPC_URL ?? rpcUrl,
        ...(network === 'local' && passphrase !== LOCAL_PASSPHRASE && { DEVNET_PASSPHRASE: passphrase }),
        ...(network === 'local' && keys.DEVNET_PROOFS !== 'real' && { DEVNET_PROOFS: keys.DEVNET_PROOFS }),
        CONFIDENTIAL_TOKEN: deployed.token,
        ...(bridgeVault && { BRIDGE_VAULT_ADDRESS: bridgeVault }),
        ...(document.auditor.id !== 0 && { AUDITOR_ID: String(document.auditor.id) }),
      },
    },
    {
      heading: 'The keys of the service: sessions, fees, faucet',
      variables: {
        SESSION_SECRET: keys.SESSION_SECRET ?? existing.SESSION_SECRET ?? randomBytes(32).toString('base64url'),
        SPONSOR_SEED: keys.SPONSOR_SEED ?? existing.SPONSOR_SEED ?? Keypair.random().secret(),
        ...(!('none' in faucet) && { FAUCET_SEED: faucet.keypair.secret() }),
        ...(isNative && { FAUCET_AMOUNT: existing.FAUCET_AMOUNT ?? NATIVE_FAUCET.amount }),
      },
    },
  ]
  return channels === 0
    ? sections
    : [...sections, ...composeRelaySections(input, deployed, existing, !('none' in faucet))]
}

/** The seeds of the file, and then those of the environment. */
const mergeSeeds = ({ keys }: Pick<Provisioning, 'keys'>, existing: Record<string, string>): string[] => [
  ...new Set([...(existing.CHANNEL_SEEDS?.split(',') ?? []), ...keys.CHANNEL_SEEDS]),
]

/** The variables that choose a relay's prover. */
const PROVER_VARIABLES = ['PROVER_CIRCUITS', 'PROVER_CRS', 'RELAY_PROVER'] as const

function composeRelaySections(
  input: Counted,
  { isEmbedded }: DeployedToken,
  existing: Record<string, string>,
  hasFaucet: boolean,
): Section[] {
  const { keys, channels } = input
  const seeds = mergeSeeds(input, existing)
  while (seeds.length < channels) seeds.push(Keypair.random().secret())
  const key = keys.RELAY_PRIVATE_KEY ?? parsePrivateRelayKey(existing.RELAY_PRIVATE_KEY ?? '') ?? generateRelayKey()
  const chosen = PROVER_VARIABLES.flatMap((name) => {
    const value = keys[name] ?? existing[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  const prover = Object.fromEntries(chosen)
  const hasCircuits = isEmbedded || 'PROVER_CIRCUITS' in prover || 'RELAY_PROVER' in prover
  const enabled = existing.BATCH_ENABLED ?? (hasFaucet && hasCircuits ? 'true' : undefined)
  return [
    {
      heading: 'Batch jobs, for service and relays',
      variables: { RELAY_PUBLIC_KEY: JSON.stringify(publicHalf(key)), ...(enabled && { BATCH_ENABLED: enabled }) },
    },
    {
      heading: 'For relays only: without these lines the service works, but cannot read amounts',
      variables: {
        CHANNEL_SEEDS: seeds.join(','),
        RELAY_PRIVATE_KEY: JSON.stringify(key),
        ...prover,
      },
    },
  ]
}
