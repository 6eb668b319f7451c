import { resource } from '#lib/api/resource.ts'
import { readAudit } from '#lib/dashboard/audit.ts'
import { auditFilters } from '../audit/audit-filters.ts'
import { answerCsv } from '../csv-answer.ts'

const HEAD = [
  'number',
  'at (UTC)',
  'action',
  'actor kind',
  'actor',
  'record kind',
  'record',
  'organisation',
  'organisation id',
  'detail',
]

/** The entries of the audit log that match a query. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource(
  {
    GET: (request) => {
      const query = Object.fromEntries(new URL(request.url).searchParams)
      return answerCsv('audit', HEAD, async ({ database }) => records(readAudit(await database(), auditFilters(query))))
    },
  },
  { readers: 'ourselves' },
)

async function* records(parts: ReturnType<typeof readAudit>) {
  for await (const lines of parts) {
    yield lines.map((line) => [
      line.sequence,
      line.createdAt,
      line.action,
      line.actorKind,
      line.actorSub,
      line.subjectKind,
      line.subjectId,
      line.organisationName,
      line.organisation,
      JSON.stringify(line.detail),
    ])
  }
}
