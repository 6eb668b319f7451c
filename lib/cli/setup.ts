import { StrKey } from '@stellar/stellar-sdk'
import { ConfigurationError, environment, isSet, readEnvironment } from '#lib/config/environment.ts'
import { describeRelay } from '#lib/server/relay-document.ts'
import { fetchDocument, requireOwnRelay, writeOwnFields } from '#lib/setup/document.ts'
import { readEnvFile, readVariables, writeEnvFile } from '#lib/setup/env-file.ts'
import { provision } from '#lib/setup/provision.ts'
import { runCommand } from './process/command.ts'
import { printMessage, writeDocument } from './process/output.ts'
import { setupServices } from './setup/services.ts'

const USAGE = `npm run setup -- --deployment FILE_OR_URL [--channels N] [--env FILE] [--sponsor-seed S...] [--replace-relay]

Creates or checks the accounts that a service needs on the network of a confidential token: a sponsor funded by
friendbot, a faucet, and N channels for relays (3, or as many as there are seeds). The document was written by the token's deployment; its
secrets are not read. If it is a file, the relay's public key and channels, and with a PUBLIC_URL the archive, are added to it, for
wallets. --replace-relay replaces the relay of another service.

Writes the environment for the service and relays to FILE (.env), readable only by its owner, before it asks the network
for anything. Existing lines are kept, so you can run the command again at any time, even after an interruption. With
--env - the environment goes to standard output, and missing keys are generated each time.

Uses these keys from the environment: SPONSOR_SEED, FAUCET_SEED (the issuer of the token's asset or a holder; generated
for a token over XLM), SESSION_SECRET, CHANNEL_SEEDS, RELAY_PRIVATE_KEY. On a real network, the circuits in
PROVER_CIRCUITS prove the registration of the channels. If DATABASE_URL is set, their balances are stored for the relays.`

const STANDARD_OUTPUT = '-'

await runCommand({
  usage: USAGE,
  options: {
    deployment: { type: 'string' },
    channels: { type: 'string' },
    env: { type: 'string', default: '.env' },
    'sponsor-seed': { type: 'string' },
    'replace-relay': { type: 'boolean', default: false },
  },
  run: async ({ deployment, channels, env: file, 'sponsor-seed': sponsorSeed, 'replace-relay': replaces }) => {
    if (!deployment) throw new ConfigurationError('--deployment', 'is required: a file or a URL (see --help)')
    if (channels !== undefined && !/^(\d|[1-9]\d|100)$/.test(channels)) {
      throw new ConfigurationError('--channels', 'not a whole number between 0 and 100')
    }
    if (sponsorSeed !== undefined && !StrKey.isValidEd25519SecretSeed(sponsorSeed)) {
      throw new ConfigurationError('--sponsor-seed', 'not a Stellar secret seed (S…)')
    }
    // Only the environment goes to standard output; everything else goes to standard error.
    console.log = console.error
    const configuration = environment()
    const toFile = file !== STANDARD_OUTPUT
    const isUrl = /^https?:/.test(deployment)
    // Keys that go to standard output are generated each time.
    const relayIn = (text: string) => (toFile ? describeRelay(readEnvironment(readVariables(text)), {}) : undefined)
    const text = await provision({
      document: await fetchDocument(deployment),
      services: setupServices,
      envText: toFile ? readEnvFile(file) : '',
      file,
      keys: sponsorSeed === undefined ? configuration : { ...configuration, SPONSOR_SEED: sponsorSeed },
      channels: channels === undefined ? undefined : Number(channels),
      keep: (text) => {
        const relay = relayIn(text)
        if (relay && !isUrl && !replaces) requireOwnRelay(deployment, relay)
        if (toFile) writeEnvFile(file, text)
      },
      say: (line) => printMessage(line),
    })
    const written = readVariables(text)
    const relay = relayIn(text)
    const { PUBLIC_URL: publicUrl } = written.PUBLIC_URL === undefined ? configuration : readEnvironment(written)
    const isKnown = written.PUBLIC_URL !== undefined || isSet('PUBLIC_URL')
    const archiveUrl = isKnown ? `${publicUrl}/api/archive` : undefined
    if (relay && isUrl) {
      printMessage(
        `\nWallets trust the relay once the deployment document has this field:\n"relay": ${JSON.stringify(relay)}`,
      )
    } else if (relay) {
      writeOwnFields(deployment, { relay, archiveUrl })
      printMessage(`\nThe relay's key and channels are in ${deployment}, for wallets`)
    }
    if (relay && archiveUrl === undefined) {
      printMessage(
        'Wallets read more than a week of history once the document has "archiveUrl": PUBLIC_URL followed by /api/archive',
      )
    }
    if (toFile) printMessage(`\nThe environment is in ${file}`)
    else writeDocument(text)
  },
})
