/**
 * A hash, an address or an id, shown by its ends. The whole of it stands there: a double click selects it, and a search
 * in the page finds it.
 */
export function Hash({ value }: { value: string }) {
  return (
    <code className="inline-flex max-w-full items-baseline text-[0.8125rem] whitespace-nowrap" title={value}>
      <span className="max-w-[7.3ch] overflow-hidden text-ellipsis">{value.slice(0, -4)}</span>
      <span>{value.slice(-4)}</span>
    </code>
  )
}

/** Where a network has a page for each transaction. */
const EXPLORERS: Record<string, string> = { testnet: 'https://stellar.expert/explorer/testnet/tx/' }

/** The hash of a transaction, which leads to the network's explorer if it has one. */
export function TransactionHash({ hash, network }: { hash: string; network: string }) {
  const explorer = EXPLORERS[network]
  if (!explorer) return <Hash value={hash} />
  return (
    <a href={`${explorer}${hash}`} rel="noreferrer" className="text-accent underline-offset-4 hover:underline">
      <Hash value={hash} />
    </a>
  )
}
