import { z } from 'zod'
import { parsePrivateRelayKey, parsePublicRelayKey } from './relay-key.ts'
import { address, amount, contract, count, list, relayKey, seed, stroops, text, webUrl, yesOrNo } from './shapes.ts'

/** The functions, other than a transfer, that the service can sponsor. */
const CALL_NAMES = ['register', 'merge', 'set_spender', 'revoke_spender'] as const

const EXAMPLE_TOKEN = 'CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC'

export const LEDGER = {
  STELLAR_NETWORK: z.enum(['local', 'testnet'], 'neither local nor testnet').optional().meta({
    about: '`local` (the embedded ledger, or the one at `STELLAR_RPC_URL`) or `testnet`.',
    unset: '`local`; on Vercel `testnet`, because nothing can be embedded there',
    example: 'testnet',
  }),
  STELLAR_RPC_URL: webUrl.optional().meta({
    about: 'The URL of a Stellar RPC on the network in `STELLAR_NETWORK`.',
    unset: 'the embedded RPC; for `testnet` the public one',
    example: 'https://soroban-testnet.stellar.org',
  }),
  CONFIDENTIAL_TOKEN: contract.optional().meta({
    about: 'The contract of the confidential token. Without it there is nothing to sponsor.',
    unset: 'the embedded ledger’s',
    example: EXAMPLE_TOKEN,
  }),
  AUDITOR_ID: count(0, 0xffff_ffff).default(0).meta({
    about:
      'The number of the deployment’s auditor in the token’s registry. `POST /calls` sponsors registrations under this auditor only.',
  }),
  BRIDGE_VAULT_ADDRESS: address.optional().meta({
    about: 'The address (G… or C…) whose balance `GET /api/funding/vault` shows.',
    unset: '`CONFIDENTIAL_TOKEN`, which holds the funds behind all confidential balances',
    example: EXAMPLE_TOKEN,
  }),
}

export const SPONSOR = {
  SPONSOR_SEED: seed.optional().meta({
    about: 'The account that pays network fees.',
    unset: 'generated and funded with an embedded ledger; otherwise nothing is sponsored',
  }),
  SPONSOR_CONTRACTS: z
    .union(
      [z.literal('none').transform(() => []), list.pipe(z.array(contract))],
      'neither contract addresses (C…) nor none',
    )
    .optional()
    .meta({
      about:
        'The contracts whose calls are sponsored, separated by commas. Their functions must take (from, to, data). `none` or an empty value refuses every contract.',
      unset: 'the confidential token',
      example: EXAMPLE_TOKEN,
    }),
  SPONSOR_FUNCTIONS: list
    .pipe(z.array(text.regex(/^\w{1,32}$/, 'not a function name')))
    .default(['confidential_transfer'])
    .meta({ about: 'The functions whose calls are sponsored, separated by commas.' }),
  SPONSOR_CALLS: z
    .union(
      [z.literal('none').transform(() => []), list.pipe(z.array(z.enum(CALL_NAMES)))],
      `neither none nor a list of ${CALL_NAMES.join(', ')}`,
    )
    .default([...CALL_NAMES])
    .meta({
      about:
        'The functions of the confidential token that `POST /calls` sponsors, separated by commas. `none` or an empty value: none, and it responds 501.',
    }),
  SPONSOR_CALLS_BUDGET: stroops.optional().meta({
    about:
      'The part of `SPONSOR_DAILY_BUDGET`, in stroops, that `register` and `merge` may use together: new accounts are free, so anyone could call them all day.',
    unset: 'a quarter of `SPONSOR_DAILY_BUDGET`',
    example: '2500000000',
  }),
  SPONSOR_MAX_FEE: stroops.default(5_000_000n).meta({
    about:
      'The maximum cost of a transfer in stroops. It limits the resource fee and the outer fee separately. The relay’s channels sign nothing with a higher resource fee.',
  }),
  SPONSOR_QUOTA_TRANSFERS: count(0, 1_000_000_000).default(500).meta({
    about: 'The number of transfers sponsored per account and UTC day.',
  }),
  SPONSOR_QUOTA_STROOPS: stroops.default(1_000_000_000n).meta({
    about: 'The stroops spent per account and UTC day.',
  }),
  SPONSOR_DAILY_BUDGET: stroops.default(10_000_000_000n).meta({
    about: 'The stroops spent for all accounts per UTC day.',
  }),
  TRANSFER_WAIT: count(1, 600).default(45).meta({
    about: 'How long a request that waits for the ledger may take, in seconds. At most 50 on Vercel.',
  }),
}

export const FAUCET = {
  FAUCET_SEED: seed.optional().meta({
    about:
      'The account that deposits test funds: either the issuer of the token’s asset, which mints them, or an account that holds some.',
    unset: 'the embedded ledger’s issuer; otherwise there is no faucet',
  }),
  FAUCET_AMOUNT: amount.default(1_000_0000000n).meta({
    about: 'The amount of one grant, in units of the asset.',
    default: '1000',
  }),
  FAUCET_COOLDOWN: count(0, 31_536_000).default(3600).meta({
    about: 'How long an account must wait for its next grant, in seconds.',
  }),
}

export const RELAY = {
  BATCH_ENABLED: yesOrNo.optional().meta({
    about: 'Whether batch jobs are accepted: `true` or `false`.',
    unset: '`true` with an embedded ledger, otherwise `false`',
    example: 'true',
  }),
  RELAY_PUBLIC_KEY: relayKey(parsePublicRelayKey, 'not a P-256 public key as a JWK').optional().meta({
    about: 'The key that amounts are encrypted to: a P-256 public key as a JWK. The service needs it.',
    unset: 'the public half of `RELAY_PRIVATE_KEY`',
  }),
  RELAY_PRIVATE_KEY: relayKey(parsePrivateRelayKey, 'not a P-256 private key as a JWK').optional().meta({
    about: 'The key that decrypts the amounts: the private key as a JWK. Only relays need it.',
    unset: 'generated and stored with an embedded ledger',
  }),
  CHANNEL_SEEDS: list.pipe(z.array(seed)).default([]).meta({
    about: 'The seeds of the channel accounts, separated by commas. Each channel pays one transfer at a time.',
    default: 'three, generated and stored, with an embedded ledger; otherwise relays need them',
  }),
  ARCHIVE_URLS: list.pipe(z.array(webUrl)).default([]).meta({
    about:
      'Further archives of the token’s events, separated by commas, each the address before `/v1`. A relay reads them if this service’s own archive lacks ledgers that its channels need.',
    default: 'none',
    example: 'https://archive.example.com/api/archive',
  }),
  RUN_CHANNELS: count(1, 100).default(5).meta({
    about: 'The maximum number of channels that a client may divide a run among.',
  }),
  RELAY_PORT: count(0, 65_535)
    .default(3100)
    .meta({ about: 'The port on which a relay serves `/health` and its discovery document.' }),
  PROVER_CIRCUITS: text.optional().meta({
    about:
      'The folder of the circuits that relays and the wallet command prove with: `<name>.json` and `<name>.vk`, or `target/circuit_<name>.json` and `vks/<name>.vk.bin`, for each of `register`, `transfer` and `withdraw`.',
    unset: 'the embedded ledger’s; required on any other network',
    example: './circuits',
  }),
  PROVER_CRS: text.optional().meta({
    about: 'The folder of the reference string: `bn254_g1.dat` and `bn254_g2.dat`.',
    unset: 'the embedded ledger’s for its own circuits; for others `~/.bb-crs`, which is downloaded if it is empty',
    example: './crs',
  }),
  PROVER_THREADS: count(1, 32).optional().meta({
    about: 'The number of threads per proof.',
    unset: 'one per processor, at most 8',
    example: '2',
  }),
  RELAY_PROVER: text.optional().meta({
    about: 'A module that replaces the built-in prover: a package or a file (`./…`) that exports `prover`.',
    unset: 'the built-in prover',
    example: './prover.ts',
  }),
}

export const EMBEDDED_LEDGER = {
  DEVNET_PORT: count(0, 65_535).default(8000).meta({ about: 'The port of the embedded ledger.' }),
  DEVNET_PROFILE: z.enum(['quick', 'testnet'], 'neither quick nor testnet').default('quick').meta({
    about: 'How often a ledger closes: `quick` is every second, `testnet` every five seconds.',
  }),
  DEVNET_CLOSE_MS: count(50, 20_000).optional().meta({
    about: 'The milliseconds between ledgers: 50 to 20000.',
    unset: 'set by `DEVNET_PROFILE`',
    example: '1000',
  }),
  DEVNET_LAG: list
    .pipe(z.array(count(0, 100)))
    .default([0])
    .meta({
      about:
        'How many ledgers each node behind the embedded RPC lags, separated by commas. Requests go to the nodes in turn.',
    }),
  DEVNET_PROTOCOL: z.enum(['28', '30'], 'neither 28 nor 30').default('28').meta({
    about:
      'The protocol number and the form of ledger headers: in protocol 30 they have close times in milliseconds (CAP-88). Transactions run as in protocol 28.',
  }),
  DEVNET_HISTORY_LEDGERS: count(100, 200_000).default(17_280).meta({
    about:
      'How many ledgers its RPC keeps. Older transactions, events and ledgers are not available. Testnet keeps 120,960, which is seven days.',
  }),
  DEVNET_PROOFS: z.enum(['real', 'stand-in'], 'neither real nor stand-in').default('real').meta({
    about:
      'Which proofs the embedded ledger accepts: `real`, or `stand-in`, which takes no time but does not prove that a balance covers an amount.',
  }),
  DEVNET_PASSPHRASE: text.default('Standalone Network ; February 2017').meta({
    about: 'The passphrase of the embedded ledger, or of the local network that `STELLAR_RPC_URL` names.',
  }),
}
