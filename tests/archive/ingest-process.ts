import { ingest } from '#lib/archive/ingest.ts'
import { openStore } from '#lib/db/connection.ts'
import { openNetwork } from '#lib/stellar/network.ts'
import { CONTRACTS } from '../support/event-rpc.ts'

/** A process that ingests until it is killed. */
const { DATABASE_URL: url = '', RPC_URL: rpcUrl = '' } = process.env
const store = openStore({ url })
const network = openNetwork({
  name: 'local',
  passphrase: 'Standalone Network ; February 2017',
  rpcUrl,
  pollMs: 100,
})
for (;;) {
  await ingest({ network, token: CONTRACTS.token, database: store.database }).catch(() => undefined)
  await new Promise((resolve) => setTimeout(resolve, 20))
}
