/** The variables that decide whether the ledger is embedded. */
interface LedgerVariables {
  STELLAR_NETWORK?: string | undefined
  STELLAR_RPC_URL?: string | undefined
}

/** Whether this process runs its own ledger. */
export function embedsLedger({ STELLAR_NETWORK, STELLAR_RPC_URL }: LedgerVariables): boolean {
  return (STELLAR_NETWORK || 'local') === 'local' && !STELLAR_RPC_URL
}

/**
 * The address on which the service and the relay listen, or undefined for all addresses. With an embedded ledger the
 * default is loopback, because the ledger's identity provider issues tokens for any email to anyone.
 */
export function listenHostOf({
  LISTEN_HOST,
  VERCEL,
  ...ledger
}: LedgerVariables & { LISTEN_HOST?: string | undefined; VERCEL?: string | undefined }): string | undefined {
  return LISTEN_HOST || (embedsLedger(ledger) && !VERCEL ? '127.0.0.1' : undefined)
}

/** Variables as the service reads them, before it has validated them: with an embedded ledger it must not listen on all addresses. */
export const withoutWhiteSpace = (variables: Record<string, string | undefined>): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, value?.trim()]))
