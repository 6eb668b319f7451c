import type { ReactNode } from 'react'
import type { RecordPage } from '#lib/dashboard/record-pages.ts'
import { AttentionItems } from './attention-items.tsx'
import { type Fact, Facts } from './facts.tsx'
import { Frame, type FrameProps } from './frame.tsx'
import type { Query } from './query.ts'
import { Unreachable } from './table.tsx'
import { Timeline } from './timeline.tsx'

interface RecordViewProps<Row> extends Omit<FrameProps, 'children'> {
  /** the path of the page */
  path: string
  now: Date
  /** undefined while the database cannot be reached */
  page: RecordPage<Row> | undefined
  facts: (record: Row) => readonly Fact[]
  /** what operators can do with the record */
  actions?: (record: Row) => ReactNode
  /** the query of the audit log for older entries */
  older: Query
  /** shown between the facts and the timeline */
  children?: ReactNode
}

/** The page of every record: what needs attention, its facts, its own content, and its timeline. */
export function RecordView<Row>(props: RecordViewProps<Row>) {
  const { path, now, page, facts, actions, older, children, ...frame } = props
  const { network } = frame
  if (!page) {
    return (
      <Frame {...frame}>
        <Unreachable />
      </Frame>
    )
  }
  return (
    <Frame {...frame}>
      <RecordAttention page={page} path={path} network={network} now={now} />
      <Facts facts={facts(page.record)} />
      {actions && <div className="mb-6 print:hidden">{actions(page.record)}</div>}
      {children}
      <Timeline timeline={page.timeline} older={older} network={network} now={now} />
    </Frame>
  )
}

interface RecordAttentionProps {
  page: Pick<RecordPage<unknown>, 'attention'>
  path: string
  network: string
  now: Date
}

/** What needs attention about a record. */
export function RecordAttention({ page: { attention }, path, network, now }: RecordAttentionProps) {
  if (attention.length === 0) return null
  return (
    <section aria-label="Needs attention" className="mb-4">
      <AttentionItems items={attention} back={path} network={network} now={now} />
    </section>
  )
}
