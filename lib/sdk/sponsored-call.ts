import type { rpc } from '@stellar/stellar-sdk'
import { untilSeen } from '#lib/wallet/transaction.ts'
import { patiently } from './patience.ts'
import { type PayrollClient, take } from './payroll-client.ts'

/**
 * Has a signed registration, merge, delegation or revocation sponsored. Waits until it is decided, and resolves to its hash
 * on the ledger. The same transaction is the same request: it is sent again as it is while the service cannot answer.
 * @param server waits until this RPC shows the transaction, too: the client may read from other nodes than the service
 * @throws PayrollError; LedgerError
 */
export async function sponsorCall(
  client: PayrollClient,
  signedXDR: string,
  server?: Pick<rpc.Server, 'getTransaction'>,
): Promise<string> {
  const { hash } = await patiently(() => take(client.POST('/calls', { body: { signedXDR } })))
  if (server) await untilSeen(server, hash)
  return hash
}
