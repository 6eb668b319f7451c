import { patiently } from './patience.ts'
import { type PayrollClient, take } from './payroll-client.ts'

/**
 * Has a signed registration, merge, delegation or revocation sponsored. Waits until it is decided, and resolves to its hash
 * on the ledger. The same transaction is the same request: it is sent again as it is while the service cannot answer.
 * @throws PayrollError
 */
export async function sponsorCall(client: PayrollClient, signedXDR: string): Promise<string> {
  return (await patiently(() => take(client.POST('/calls', { body: { signedXDR } })))).hash
}
