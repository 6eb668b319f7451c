import Link from 'next/link'
import type { Attention } from '#lib/dashboard/attention.ts'
import { AttentionItems } from '../attention-items.tsx'
import { addressOf } from '../query.ts'
import { Shape } from '../status.tsx'

interface AttentionListProps {
  items: readonly Attention[]
  otherFailedBatches: number
  network: string
  now: Date
}

const GROUPS = [
  { actor: 'operator', title: 'For you', note: '' },
  { actor: 'employer', title: 'For the employer', note: 'only the employer can act' },
] as const

/** The items that need attention, each with its owner, time, reason and remedy; a single line when there are none. */
export function AttentionList({ items, otherFailedBatches, network, now }: AttentionListProps) {
  return (
    <section aria-labelledby="attention" className="mb-8">
      <h2 id="attention" className="mb-2 font-semibold">
        Needs attention
        {items.length > 0 && <span className="ml-2 font-normal text-faint">{items.length}</span>}
        <Link
          href={addressOf('/audit', { action: 'attention.acknowledged' })}
          prefetch={false}
          className="ml-4 inline-block min-h-6 text-[0.8125rem] font-normal text-soft underline-offset-4 hover:text-accent hover:underline print:hidden"
        >
          Acknowledged items
        </Link>
      </h2>
      {items.length === 0 ? (
        <p className="rounded-lg border border-line bg-surface px-4 py-3 text-soft shadow-card">
          <Shape tone="good" />
          All is well: nothing needs your attention.
        </p>
      ) : (
        GROUPS.map(({ actor, title, note }) => {
          const own = items.filter((item) => item.actor === actor)
          if (own.length === 0) return null
          return (
            <div key={actor} className="mb-4 last:mb-0">
              <h3 className="mb-1.5 text-[0.8125rem] font-medium text-soft">
                {title} <span className="font-normal text-faint">{own.length}</span>
                {note && <span className="ml-2 font-normal text-faint">{note}</span>}
              </h3>
              <AttentionItems items={own} back="/overview" network={network} now={now} />
            </div>
          )
        })
      )}
      {otherFailedBatches > 0 && (
        <p className="mt-2 text-[0.8125rem] text-faint">
          <Link
            href={addressOf('/batches', { status: 'failed' })}
            prefetch={false}
            className="underline underline-offset-4 hover:text-accent"
          >
            {otherFailedBatches === 1 ? 'One more batch has' : `${otherFailedBatches} more batches have`} payouts that
            failed
          </Link>
        </p>
      )}
    </section>
  )
}
