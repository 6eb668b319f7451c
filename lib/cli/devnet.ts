import { environment } from '#lib/config/environment.ts'
import { generateIdentityKey } from '#lib/devnet/devnet.ts'
import { startLedger } from '#lib/server/ledger.ts'
import { runCommand } from './process/command.ts'
import { print } from './process/output.ts'

const USAGE = `npm run devnet

Runs only the embedded ledger, until SIGTERM, and prints the settings of a service that uses it. For its variables
(DEVNET_…) see docs/configuration.md.`

await runCommand({ usage: USAGE, options: {}, run: serveLedger })

async function serveLedger(): Promise<void> {
  // A standalone ledger generates a key for its test issuer at each start, so access tokens are valid until it stops.
  const { devnet, issuer, audience } = await startLedger(environment(), await generateIdentityKey())
  print(`friendbot    ${devnet.friendbotUrl}?addr=G...
deployment   ${devnet.url}/deployment.json
test issuer  ${issuer}  (audience ${audience})

Settings of a service that uses this ledger:
  STELLAR_RPC_URL=${devnet.rpcUrl}
  CONFIDENTIAL_TOKEN=${devnet.deployment.contracts.token}
  FAUCET_SEED=${devnet.issuerSecret}
  IDP_ISSUER=${issuer}
  IDP_AUDIENCE=${audience}
  IDP_ALGS=ES256

To create keys and funded accounts for its fees and relays, and write them to .env with most of these settings:
  FAUCET_SEED=${devnet.issuerSecret} npm run setup -- --deployment ${devnet.url}/deployment.json`)

  const stop = async () => {
    await devnet.close()
    process.exit(0)
  }
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
}
