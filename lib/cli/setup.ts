import { StrKey } from '@stellar/stellar-sdk'
import { ConfigurationError, environment } from '#lib/config/environment.ts'
import { fetchDocument } from '#lib/setup/document.ts'
import { readEnvFile, writeEnvFile } from '#lib/setup/env-file.ts'
import { provision } from '#lib/setup/provision.ts'
import { runCommand } from './command.ts'

const USAGE = `npm run setup -- --deployment FILE_OR_URL [--channels N] [--env FILE] [--sponsor-seed S...]

Makes or checks what a service needs on the network of a confidential token: a sponsor that friendbot has filled, a
faucet, N channel accounts for relays (3). The document is what the token's deployment wrote; no secret of it is read.

FILE (.env) gets the environment for service and relays. It holds keys, so only its owner may read it. It is written before
the network is asked for anything. Its lines are kept, so the command may be run again at any time, also after it was
interrupted. With --env - the environment goes to standard output, and keys that are not given are made anew.

Keys from the environment are used: SPONSOR_SEED, FAUCET_SEED (the issuer of the token's asset, or an account that holds
some; for a token over XLM one is made), SESSION_SECRET, CHANNEL_SEEDS, RELAY_PRIVATE_KEY. Channels of a real network are
registered with proofs made by the circuits in PROVER_CIRCUITS. DATABASE_URL, if it is set, remembers their balances for the relays.`

const STANDARD_OUTPUT = '-'

await runCommand({
  usage: USAGE,
  options: {
    deployment: { type: 'string' },
    channels: { type: 'string', default: '3' },
    env: { type: 'string', default: '.env' },
    'sponsor-seed': { type: 'string' },
  },
  run: async ({ deployment, channels, env: file, 'sponsor-seed': sponsorSeed }) => {
    if (!deployment) throw new ConfigurationError('--deployment', 'is needed: a file or a URL (--help says more)')
    if (!/^(\d|[1-9]\d|100)$/.test(channels)) {
      throw new ConfigurationError('--channels', 'not a whole number between 0 and 100')
    }
    if (sponsorSeed !== undefined && !StrKey.isValidEd25519SecretSeed(sponsorSeed)) {
      throw new ConfigurationError('--sponsor-seed', 'not a Stellar secret seed (S…)')
    }
    // Standard output is for the environment alone: everything else that is printed goes to standard error.
    console.log = console.error
    const given = environment()
    const toFile = file !== STANDARD_OUTPUT
    const text = await provision({
      document: await fetchDocument(deployment),
      kept: toFile ? readEnvFile(file) : '',
      file,
      given: sponsorSeed === undefined ? given : { ...given, SPONSOR_SEED: sponsorSeed },
      channels: Number(channels),
      keep: (text) => {
        if (toFile) writeEnvFile(file, text)
      },
      say: (line) => console.error(line),
    })
    if (toFile) console.error(`\nThe environment is in ${file}`)
    else process.stdout.write(text)
  },
})
