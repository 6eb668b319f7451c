import { type AccountStatement, readAccountStatement } from '#lib/disclosure/account-statement.ts'
import { readInSteps } from '#lib/disclosure/statement.ts'
import type { AnyHolder } from '#lib/wallet/keys.ts'
import { type DeploymentWithHistory, EVER } from './own-payments.ts'
import { pause } from './patience.ts'

/** A page stays responsive between so many. */
const EVENTS_AT_ONCE = 10

/** The period of a statement, ISO 8601, by default everything; the end is excluded. */
interface StatementOptions {
  from?: string
  to?: string
  /** `done` of `of` events are decrypted */
  progress?(progress: { step: 'reading'; done: number; of: number }): void
}

/**
 * Every payment that an account has received and sent, with its amount and the balance after it, from the ledger and the archives
 * alone. Decrypting takes a few milliseconds a payment; the deployment's `signal` ends it.
 * @throws WalletError `other-keys`, `archive-unavailable`, `history-incomplete`; LedgerError
 */
export async function readStatement(
  deployment: DeploymentWithHistory,
  holder: Pick<AnyHolder, 'address' | 'keys'>,
  options: StatementOptions = {},
): Promise<AccountStatement> {
  const { from = EVER.from, to = EVER.to, progress } = options
  const network = { ...deployment, archives: deployment.archives ?? [] }
  return await readAccountStatement(network, holder, { from, to }, async (input) => {
    const steps = readInSteps(input)
    for (;;) {
      const { done, value } = steps.next()
      if (done) return value
      progress?.({ step: 'reading', done: value, of: input.events.length })
      if (value % EVENTS_AT_ONCE === 0) await pause(0, deployment.signal)
    }
  })
}
