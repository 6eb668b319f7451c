import type { TransferLine } from '#lib/dashboard/transfers.ts'
import { Hash, TransactionHash } from '../hash.tsx'

interface TransferHashesProps {
  transfer: Pick<TransferLine, 'innerHash' | 'outerHash' | 'ledgerHash'>
  network: string
}

/**
 * The hashes of a transfer: the sponsor's envelope, the client's inner transaction, and the applied hash, which is
 * usually one of the two. Only the applied hash has an explorer page. A deposit of the faucet has no fee bump, so its
 * outer hash equals its inner hash and is shown once.
 */
export function TransferHashes({ transfer: { innerHash, outerHash, ledgerHash }, network }: TransferHashesProps) {
  const signed = outerHash === innerHash ? { transaction: innerHash } : { outer: outerHash, inner: innerHash }
  const isOther = ledgerHash !== null && !Object.values(signed).includes(ledgerHash)
  return (
    <ul>
      {Object.entries(isOther ? { ledger: ledgerHash, ...signed } : signed).map(([role, hash]) =>
        hash === ledgerHash ? (
          <li key={role}>
            <TransactionHash value={hash} network={network} isWhole />{' '}
            <span className="text-xs text-faint">{role}</span>
            <span className="sr-only">, on the ledger</span>
          </li>
        ) : (
          <li key={role} className="text-faint">
            <Hash value={hash} isWhole /> <span className="text-xs">{role}</span>
          </li>
        ),
      )}
      {ledgerHash !== null && ledgerHash !== outerHash && (
        <li className="text-xs text-soft">It was applied without the sponsor</li>
      )}
    </ul>
  )
}
