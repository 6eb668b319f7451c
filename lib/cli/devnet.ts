import { join } from 'node:path'
import { startDevnet } from '#lib/devnet/devnet.ts'
import { environment } from '#lib/env.ts'

const { DATA_DIR, DEVNET_PORT, DEVNET_CLOSE_MS, DEVNET_PASSPHRASE } = environment()

const devnet = await startDevnet({
  directory: join(DATA_DIR, 'ledger'),
  port: DEVNET_PORT,
  closeMs: DEVNET_CLOSE_MS,
  passphrase: DEVNET_PASSPHRASE,
})
console.log(`Stellar RPC  ${devnet.rpcUrl}`)
console.log(`friendbot    ${devnet.friendbotUrl}?addr=G...`)
console.log(`deployment   ${devnet.url}/deployment.json`)

const stop = async () => {
  await devnet.close()
  process.exit(0)
}
process.once('SIGINT', stop)
process.once('SIGTERM', stop)
