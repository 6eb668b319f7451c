import { createServer } from 'node:http'
import { Keypair, xdr } from '@stellar/stellar-sdk'
import { accountEntry } from './fake-rpc.ts'

export interface LedgerServer {
  url: string
  /** what the next calls are answered with; unix seconds, stroops of the one account there is */
  closedAt: number
  balance: bigint | undefined
  /** whether getHealth, or everything, is answered with 503 */
  down: 'nothing' | 'health' | 'all'
  calls: number
  close(): Promise<void>
}

/** A JSON-RPC server that answers what readiness asks of a ledger: getHealth, and the sponsor's account entry. */
export async function startLedgerServer(sponsor: string): Promise<LedgerServer> {
  const server = createServer(async (request, response) => {
    ledger.calls += 1
    let body = ''
    for await (const chunk of request) body += chunk
    const { id, method } = JSON.parse(body) as { id: number; method: string }
    if (ledger.down === 'all' || (ledger.down === 'health' && method === 'getHealth')) {
      response.writeHead(503).end('no backend')
      return
    }
    const result = method === 'getHealth' ? health(ledger) : entries(ledger, sponsor)
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || !address) throw new Error('not listening')
  const ledger: LedgerServer = {
    url: `http://127.0.0.1:${address.port}`,
    closedAt: 0,
    balance: undefined,
    down: 'nothing',
    calls: 0,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return ledger
}

/** RPCs give the close time as a string, and as a number since protocol 23. */
function health({ closedAt }: LedgerServer): object {
  return { status: 'healthy', latestLedger: 41, latestLedgerCloseTime: String(closedAt), oldestLedger: 1 }
}

function entries({ balance }: LedgerServer, sponsor: string): object {
  if (balance === undefined) return { latestLedger: 41, entries: [] }
  const accountId = Keypair.fromPublicKey(sponsor).xdrAccountId()
  const entry = new xdr.AccountEntry({ ...accountEntry(sponsor), balance })
  const found = {
    key: xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId })).toXdr('base64'),
    xdr: xdr.LedgerEntryData.account(entry).toXdr('base64'),
    lastModifiedLedgerSeq: 1,
  }
  return { latestLedger: 41, entries: [found] }
}
