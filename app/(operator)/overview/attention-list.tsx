import type { Attention } from '#lib/dashboard/attention.ts'
import { AttentionItems } from '../attention-items.tsx'
import type { View } from '../figures.tsx'
import { addressOf } from '../query.ts'
import { PageLink } from '../record-links.tsx'
import { Section } from '../section.tsx'
import { Shape } from '../status.tsx'

interface AttentionListProps extends View {
  items: readonly Attention[]
  otherFailedBatches: number
}

const GROUPS = [
  { actor: 'operator', title: 'For you', note: '' },
  { actor: 'employer', title: 'For the employer', note: 'only the employer can act' },
] as const

const ACKNOWLEDGED =
  'ml-4 inline-block min-h-6 text-[0.8125rem] font-normal text-soft underline-offset-4 hover:text-accent hover:underline print:hidden'

/** The items that need attention, each with its owner, time, reason and remedy; a single line when there are none. */
export function AttentionList({ items, otherFailedBatches: others, ...view }: AttentionListProps) {
  const acknowledged = addressOf('/audit', { action: 'attention.acknowledged' })
  return (
    <Section
      id="attention"
      title="Needs attention"
      note={items.length}
      beside={<PageLink href={acknowledged} name="Acknowledged items" className={ACKNOWLEDGED} />}
    >
      {items.length === 0 && (
        <p className="rounded-lg border border-line bg-surface px-4 py-3 text-soft shadow-card">
          <Shape tone="good" />
          All is well: nothing needs your attention.
        </p>
      )}
      {GROUPS.map(({ actor, title, note }) => {
        const own = items.filter((item) => item.actor === actor)
        if (own.length === 0) return null
        return (
          <div key={actor} className="mb-4 last:mb-0">
            <h3 className="mb-1.5 text-[0.8125rem] font-medium text-soft">
              {title} <span className="font-normal text-faint">{own.length}</span>
              {note && <span className="ml-2 font-normal text-faint">{note}</span>}
            </h3>
            <AttentionItems items={own} back="/overview" {...view} />
          </div>
        )
      })}
      {others > 0 && (
        <p className="mt-2 text-[0.8125rem] text-faint">
          <PageLink
            href={addressOf('/batches', { status: 'failed' })}
            name={`${others === 1 ? 'One more batch has' : `${others} more batches have`} payouts that failed`}
            className="underline underline-offset-4 hover:text-accent"
          />
        </p>
      )}
    </Section>
  )
}
