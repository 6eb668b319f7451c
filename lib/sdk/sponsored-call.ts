import { type PayrollClient, PayrollError, take } from './payroll-client.ts'

/** How many times an undecided call is posted again. Each attempt lasts as long as the service waits. */
const POSTS = 10

/**
 * Has a signed registration, merge, delegation or revocation sponsored. Waits until it is decided, and resolves to its hash
 * on the ledger.
 * @throws PayrollError
 */
export async function sponsorCall(client: PayrollClient, signedXDR: string): Promise<string> {
  for (let post = 1; ; post += 1) {
    try {
      return (await take(client.POST('/calls', { body: { signedXDR } }))).hash
    } catch (error) {
      // The same transaction is the same request: it is paid for once.
      if (!(error instanceof PayrollError) || error.code !== 'transfer-open' || post === POSTS) throw error
    }
  }
}
