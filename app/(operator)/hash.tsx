import { CopyButton } from './copy-button.tsx'

/**
 * A hash, an address or an id. The page contains it as one word, so that a double click selects it and a search in the
 * page finds it; CSS shows only its ends. A tap expands it.
 * @param isWhole whether it is expanded from the start
 */
export function Hash({ value, href, isWhole }: { value: string; href?: string | undefined; isWhole?: boolean }) {
  const short = (
    <code data-tail={value.slice(-4)} title={value}>
      {value}
    </code>
  )
  return (
    <span className="hash" data-whole={isWhole || undefined}>
      {href === undefined ? (
        short
      ) : (
        <a href={href} rel="noreferrer" className="text-accent underline-offset-4 hover:underline">
          {short}
        </a>
      )}
      <CopyButton value={value} />
    </span>
  )
}

/** The explorers of the networks that have one, with pages for accounts, contracts and transactions. */
const EXPLORERS: Record<string, string> = { testnet: 'https://stellar.expert/explorer/testnet' }

interface LinkedHashProps {
  value: string
  network: string
  isWhole?: boolean
}

/** A G- or C-address, linked to the network's explorer if there is one. */
export function Address({ value, network, isWhole = false }: LinkedHashProps) {
  const explorer = /^[GC][A-Z2-7]{55}$/.test(value) ? EXPLORERS[network] : undefined
  const page = `${explorer}/${value.startsWith('C') ? 'contract' : 'account'}/${value}`
  return <Hash value={value} href={explorer && page} isWhole={isWhole} />
}

/** The hash of a transaction, linked to the network's explorer, or else to a page of this service. */
export function TransactionHash({ value, network, isWhole = false }: LinkedHashProps) {
  const explorer = EXPLORERS[network]
  return <Hash value={value} href={explorer ? `${explorer}/tx/${value}` : `/ledger/${value}`} isWhole={isWhole} />
}
