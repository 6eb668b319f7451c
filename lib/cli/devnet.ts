import { environment } from '#lib/config/environment.ts'
import { generateIdentityKey } from '#lib/devnet/devnet.ts'
import { startLedger } from '#lib/server/ledger.ts'
import { runCommand } from './process/command.ts'

const USAGE = `npm run devnet

Runs the embedded ledger alone, until SIGTERM, and prints what a service needs to use it. Its variables (DEVNET_…) are in
docs/configuration.md.`

await runCommand({ usage: USAGE, options: {}, run: serveLedger })

async function serveLedger(): Promise<void> {
  // A ledger that runs alone generates a key for its test issuer at each start, so its access tokens are valid until it
  // stops.
  const { devnet, issuer, audience } = await startLedger(environment(), await generateIdentityKey())
  console.log(`friendbot    ${devnet.friendbotUrl}?addr=G...
deployment   ${devnet.url}/deployment.json
test issuer  ${issuer}  (audience ${audience})

A service that is to use this ledger:
  STELLAR_RPC_URL=${devnet.rpcUrl}
  CONFIDENTIAL_TOKEN=${devnet.deployment.contracts.token}
  FAUCET_SEED=${devnet.issuerSecret}
  IDP_ISSUER=${issuer}
  IDP_AUDIENCE=${audience}
  IDP_ALGS=ES256

Keys and funded accounts for its fees and its relays, written to .env with most of this, are made by
  FAUCET_SEED=${devnet.issuerSecret} npm run setup -- --deployment ${devnet.url}/deployment.json`)

  const stop = async () => {
    await devnet.close()
    process.exit(0)
  }
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
}
