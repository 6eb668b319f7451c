import { resource } from '#lib/api/resource.ts'
import { readPayouts } from '#lib/dashboard/payouts.ts'
import { answerCsv } from '../csv-answer.ts'

const HEAD = [
  'created (UTC)',
  'organisation',
  'batch',
  'batch id',
  'contractor',
  'contractor id',
  'status',
  'address',
  'paid (UTC)',
  'transaction',
  'error',
  'payout id',
]

/** The payouts of all organisations, of one, or of one batch, without amounts. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource(
  {
    GET: (request) => {
      const query = new URL(request.url).searchParams
      const filters = { organisation: query.get('organisation') ?? '', batch: query.get('batch') ?? '' }
      return answerCsv('payouts', HEAD, async ({ database }) => records(readPayouts(await database(), filters)))
    },
  },
  { readers: 'ourselves' },
)

async function* records(parts: ReturnType<typeof readPayouts>) {
  for await (const rows of parts) {
    yield rows.map((row) => [
      row.createdAt,
      row.organisation,
      row.batch,
      row.batchId,
      row.contractor,
      row.contractorId,
      row.status,
      row.address,
      row.paidAt,
      row.txHash ?? row.transfer,
      row.error,
      row.id,
    ])
  }
}
