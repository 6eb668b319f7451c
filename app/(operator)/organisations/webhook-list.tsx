import type { WebhookLine } from '#lib/dashboard/webhooks.ts'
import { groupDigits } from '#lib/text/figures.ts'
import { timeColumn } from '../columns.tsx'
import type { View } from '../figures.tsx'
import { Section } from '../section.tsx'
import { Sign } from '../status.tsx'
import { type Column, Table } from '../table.tsx'

const COLUMNS: Column<WebhookLine>[] = [
  { head: 'Host', cell: ({ host }) => <span className="font-medium [overflow-wrap:anywhere]">{host}</span> },
  { head: 'Status', cell: (webhook) => <WebhookStatus {...webhook} /> },
  { head: 'Events', from: 'lg', cell: ({ types }) => types?.join(', ') ?? 'All' },
  { head: 'Waiting', from: 'sm', isNumber: true, cell: ({ waiting }) => groupDigits(waiting) },
  timeColumn('Last delivery', ({ deliveredAt }) => deliveredAt, { from: 'sm', none: 'Never' }),
  timeColumn('Added', ({ createdAt }) => createdAt, { from: 'md' }),
]

/** The endpoints of an organisation that get its events. */
export const Webhooks = ({ webhooks, ...view }: View & { webhooks: readonly WebhookLine[] }) =>
  webhooks.length > 0 && (
    <Section id="webhooks" title="Webhooks" note={webhooks.length}>
      <Table caption="Webhooks" view={view} columns={COLUMNS} rows={webhooks} keyOf={({ id }) => id} />
    </Section>
  )

function WebhookStatus({ disabledAt, failing }: WebhookLine) {
  if (disabledAt) return <Sign tone="bad">Disabled</Sign>
  return failing ? <Sign tone="late">Retrying</Sign> : <Sign tone="good">Enabled</Sign>
}
