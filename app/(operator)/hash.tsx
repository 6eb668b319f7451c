import type { ReactNode } from 'react'
import { CopyButton } from './copy-button.tsx'

/**
 * A hash, an address or an id. The page contains it as one word, so that a double click selects it and a search in the
 * page finds it; CSS shows only its ends. A tap expands it.
 * @param isWhole whether it is expanded from the start
 */
export function Hash({ value, href, isWhole }: { value: string; href?: string; isWhole?: boolean }) {
  const short = <Ends value={value} />
  return (
    <span className="hash" data-whole={isWhole || undefined}>
      {href === undefined ? short : <Leading href={href}>{short}</Leading>}
      <CopyButton value={value} />
    </span>
  )
}

function Ends({ value }: { value: string }) {
  return (
    <code data-tail={value.slice(-4)} title={value}>
      {value}
    </code>
  )
}

function Leading({ href, children }: { href: string; children: ReactNode }) {
  return (
    <a href={href} rel="noreferrer" className="text-accent underline-offset-4 hover:underline">
      {children}
    </a>
  )
}

/** The explorers of the networks that have one, with pages for accounts, contracts and transactions. */
const EXPLORERS: Record<string, string> = { testnet: 'https://stellar.expert/explorer/testnet' }

/** A G- or C-address, linked to the network's explorer if there is one. */
export function Address({ value, network, isWhole = false }: { value: string; network: string; isWhole?: boolean }) {
  const explorer = EXPLORERS[network]
  const kind = value.startsWith('C') ? 'contract' : 'account'
  const isAddress = /^[GC][A-Z2-7]{55}$/.test(value)
  return explorer && isAddress ? (
    <Hash value={value} href={`${explorer}/${kind}/${value}`} isWhole={isWhole} />
  ) : (
    <Hash value={value} isWhole={isWhole} />
  )
}

/** The hash of a transaction, linked to the network's explorer, or else to a page of this service. */
export function TransactionHash({
  hash,
  network,
  isWhole = false,
}: {
  hash: string
  network: string
  isWhole?: boolean
}) {
  const explorer = EXPLORERS[network]
  return <Hash value={hash} href={explorer ? `${explorer}/tx/${hash}` : `/ledger/${hash}`} isWhole={isWhole} />
}
