import type { Route } from 'next'
import type { ReactNode } from 'react'
import { missing } from '#app/missing.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import type { RecordPage } from '#lib/dashboard/record-pages.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Service } from '#lib/server/services.ts'
import { AttentionItems } from './attention-items.tsx'
import { FactList, type Facts } from './facts.tsx'
import type { View } from './figures.tsx'
import { Frame, type FrameProps, linkTo } from './frame.tsx'
import RecordNotFound from './not-found.tsx'
import { addressOf, type Query, readQuery } from './query.ts'
import { type RecordType, recordPath } from './record-links.tsx'
import { requireOperator } from './require-operator.ts'
import { Unreachable } from './table.tsx'
import { Timeline } from './timeline.tsx'

/** What the page of a record is shown with. */
export interface RecordContext extends View {
  id: string
  path: Route
  query: Query
  service: Service
}

/** How a record is shown on its page. */
interface RecordDisplay<Page extends RecordPage<unknown>> {
  type: RecordType
  here: NonNullable<FrameProps['here']>
  read: (db: Database, context: RecordContext) => Promise<Page | undefined>
  /** without a record while the database cannot be reached */
  title: (record: Page['record'] | undefined, id: string) => string
  /** the parent of the record, if it is not the page in the navigation */
  above?: (record: Page['record']) => NonNullable<FrameProps['above']>
  facts: (record: Page['record'], context: RecordContext) => Facts
  /** what operators can do with the record */
  actions?: (record: Page['record'], context: RecordContext) => ReactNode
  /** the filter of the audit log for older entries */
  entries?: string
  /** shown between the facts and the timeline */
  content?: (page: Page, context: RecordContext) => ReactNode
}

/** The page of every record: what needs attention, its facts, its own content, and its timeline. */
export function recordPage<Page extends RecordPage<unknown>>(display: RecordDisplay<Page>) {
  const { type, here, read, title, above = () => linkTo(here), entries = 'record' } = display
  return async function RecordPage({ params, searchParams }: PageProps<'/batches/[id]'>) {
    const [{ id }, query] = [await params, await readQuery(searchParams)]
    const path = recordPath(type, encodeURIComponent(id))
    const service = await requireOperator(addressOf(path, query))
    const network = service.settings.network.name
    const context = { id, path, query, service, network, now: service.now() }
    const found = await readIfReachable(service.database, async (db) => ({ page: await read(db, context) }))
    if (found && !found.page) return missing(<RecordNotFound />)
    const record = found?.page?.record
    return (
      <Frame here={here} title={title(record, id)} network={network} above={record ? above(record) : linkTo(here)}>
        {found?.page ? (
          <Content page={found.page} display={display} context={context} older={{ [entries]: id }} />
        ) : (
          <Unreachable />
        )}
      </Frame>
    )
  }
}

interface ContentProps<Page extends RecordPage<unknown>> {
  page: Page
  display: RecordDisplay<Page>
  context: RecordContext
  older: Query
}

function Content<Page extends RecordPage<unknown>>({ page, display, context, older }: ContentProps<Page>) {
  const { path, network, now } = context
  const { attention, record, timeline } = page
  const { facts, actions, content } = display
  return (
    <>
      {attention.length > 0 && (
        <section aria-label="Needs attention" className="mb-4">
          <AttentionItems items={attention} back={path} network={network} now={now} />
        </section>
      )}
      <section aria-label="Summary">
        <FactList facts={facts(record, context)} />
      </section>
      {actions && <div className="mb-6 print:hidden">{actions(record, context)}</div>}
      {content?.(page, context)}
      <Timeline timeline={timeline} older={older} network={network} now={now} />
    </>
  )
}
