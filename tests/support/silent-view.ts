import { type LedgerView, openView } from '#lib/stellar/view.ts'

/** What a process knows of a network whose RPC does not respond. */
export const silentView = (): LedgerView =>
  openView({ pollMs: 1, call: () => Promise.reject(new Error('the RPC does not respond')) })
