import Link from 'next/link'
import type { RowEvent } from '#lib/dashboard/timeline.ts'
import { Hash, TransactionHash } from './hash.tsx'
import { addressOf } from './query.ts'
import { type RecordType, recordPath } from './record-links.tsx'

/** The details of an event, with links to the records that it names. */
export function Details({ detail, network }: Pick<RowEvent, 'detail'> & { network: string }) {
  return (
    <span className="text-xs [overflow-wrap:anywhere] text-soft">
      {Object.entries(detail).map(([name, value]) => (
        <span key={name} className="mr-3 inline-flex max-w-full items-center gap-x-1">
          <span className="shrink-0 text-faint">{name}:</span>
          <span className="min-w-0">
            <Value name={name} value={Array.isArray(value) ? value.join(', ') : String(value)} network={network} />
          </span>
        </span>
      ))}
    </span>
  )
}

const TYPES: readonly RecordType[] = ['transfer', 'payout', 'batch', 'job', 'contractor', 'organisation']

function Value({ name, value, network }: { name: string; value: string; network: string }) {
  const type = TYPES.find((one) => one === name)
  if (type && /^[0-9a-f-]{36}$/.test(value)) {
    return (
      <Link
        href={recordPath(type, value)}
        prefetch={false}
        className="inline-block min-h-6 font-mono leading-6 text-accent underline-offset-4 hover:underline"
      >
        {value.slice(0, 8)}
      </Link>
    )
  }
  if (name === 'request') {
    return (
      <Link
        href={addressOf('/search', { q: value })}
        prefetch={false}
        title={value}
        className="inline-block min-h-6 font-mono leading-6 text-accent underline-offset-4 hover:underline"
      >
        {value.length > 12 ? `${value.slice(0, 8)}…` : value}
      </Link>
    )
  }
  if (name === 'hash' && /^[0-9a-f]{64}$/.test(value)) return <TransactionHash hash={value} network={network} />
  return /^[0-9a-f-]{36,64}$|^[GC][A-Z2-7]{55}$/.test(value) ? <Hash value={value} /> : value
}
