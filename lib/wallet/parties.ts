import { type ConfidentialAccount, readAuditorKey, readConfidentialAccounts } from './account.ts'
import type { Deployment } from './deployment.ts'
import { WalletError } from './wallet-error.ts'

/**
 * An account that takes part in a call, and its auditor's current key. Rotating the key invalidates proofs in flight.
 */
interface Party {
  account: ConfidentialAccount
  auditor: Uint8Array
}

/**
 * Reads the parties of one call, each account and each auditor once.
 * @throws WalletError `not-registered`; errors of the two readings
 */
export async function readParties(
  deployment: Deployment,
  addresses: readonly string[],
): Promise<(address: string) => Party> {
  const accounts = await readConfidentialAccounts(deployment.rpc, deployment.token, addresses)
  const missing = addresses.find((address) => !accounts.has(address))
  if (missing !== undefined) throw new WalletError('not-registered', `${missing} has no confidential account`)
  const auditors = new Map<number, Uint8Array>()
  for (const id of new Set([...accounts.values()].map(({ auditorId }) => auditorId))) {
    auditors.set(id, await readAuditorKey(deployment, id))
  }
  return (address) => {
    const account = accounts.get(address)
    const auditor = account && auditors.get(account.auditorId)
    if (!auditor) throw new Error(`${address} is not a party to this call`)
    return { account, auditor }
  }
}
