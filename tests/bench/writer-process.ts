import { once } from 'node:events'
import { openStore } from '#lib/db/connection.ts'
import { limits, PLENTY, recordNamed, settleNamed, transferNamed } from '../transfers/quota-cases.ts'
import { SUCCESS } from '../transfers/records.ts'

// One process of `measureWriters`: its clients record and settle transfers one at a time.
const [url = '', clients, seconds] = process.argv.slice(2)
const store = openStore({ url })
const db = await store.database()
const plenty = { ...limits, transfersPerAccount: 1_000_000, stroopsPerAccount: PLENTY, dailyBudget: PLENTY }
process.send?.('ready')
await once(process, 'message')

const end = performance.now() + Number(seconds) * 1000
let count = 0
async function write(client: number): Promise<void> {
  const payer = `payer ${process.pid} ${client}`
  for (let number = 0; performance.now() < end; number += 1) {
    const transfer = transferNamed(`${payer} ${number}`, { quotaAccount: payer })
    await recordNamed(db, transfer, plenty, PLENTY)
    await settleNamed(db, transfer.innerHash, SUCCESS, new Date())
    if (performance.now() < end) count += 1
  }
}
await Promise.all(Array.from({ length: Number(clients) }, (_, client) => write(client)))
process.send?.(count)
await once(process, 'disconnect')
await store.close()
