import { renderList } from '../list-page.tsx'
import { addressOf, readQuery } from '../query.ts'
import { requireOperator } from '../require-operator.ts'
import { REFUSAL_LIST } from './refusal-list.tsx'
import { TRANSFER_LIST } from './transfer-list.tsx'

export const metadata = { title: TRANSFER_LIST.title }

/** The transfers that the sponsor paid for. A separate tab lists the ones that it refused. */
export default async function TransfersPage({ searchParams }: PageProps<'/transfers'>) {
  const query = await readQuery(searchParams)
  const service = await requireOperator(addressOf('/transfers', query))
  return query.view === 'refused'
    ? await renderList(REFUSAL_LIST, query, service)
    : await renderList(TRANSFER_LIST, query, service)
}
