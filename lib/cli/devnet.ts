import { join } from 'node:path'
import { environment } from '#lib/config/environment.ts'
import { generateIdentityKey, identityIssuer, startDevnet } from '#lib/devnet/devnet.ts'
import { runCommand } from './command.ts'

const USAGE = `npm run devnet

Runs the embedded ledger alone, until SIGTERM, and prints what a service needs to use it. Its variables (DEVNET_…) are in
docs/configuration.md.`

await runCommand({ usage: USAGE, options: {}, run: serveLedger })

async function serveLedger(): Promise<void> {
  const { DATA_DIR, DEVNET_PORT, DEVNET_PROFILE, DEVNET_CLOSE_MS, DEVNET_LAG, DEVNET_PASSPHRASE, DEVNET_PROOFS } =
    environment()

  // Its tokens are good until it ends: the issuer's key is not kept for a ledger that stands alone.
  const key = await generateIdentityKey()
  let answerIdentity: ReturnType<typeof identityIssuer> | undefined
  const devnet = await startDevnet({
    directory: join(DATA_DIR, 'ledger'),
    port: DEVNET_PORT,
    profile: DEVNET_PROFILE,
    ...(DEVNET_CLOSE_MS !== undefined && { closeMs: DEVNET_CLOSE_MS }),
    lag: DEVNET_LAG,
    passphrase: DEVNET_PASSPHRASE,
    proofs: DEVNET_PROOFS,
    identity: (request, response) => void answerIdentity?.(request, response),
  })
  answerIdentity = identityIssuer({ issuer: `${devnet.url}/idp`, audience: 'confidential-payroll', key })
  console.log(`friendbot    ${devnet.friendbotUrl}?addr=G...
deployment   ${devnet.url}/deployment.json
test issuer  ${devnet.url}/idp  (audience confidential-payroll)

A service that is to use this ledger:
  STELLAR_RPC_URL=${devnet.rpcUrl}
  CONFIDENTIAL_TOKEN=${devnet.deployment.contracts.token}
  FAUCET_SEED=${devnet.issuerSecret}
  IDP_ISSUER=${devnet.url}/idp
  IDP_AUDIENCE=confidential-payroll
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
