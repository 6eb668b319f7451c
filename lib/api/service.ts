import { z } from 'zod'
import { scrape } from '#lib/dashboard/scrape.ts'
import { METRICS_TYPE } from '#lib/observability/metrics.ts'
import { type ChoreReport, runChores } from '#lib/server/maintenance.ts'
import { readiness, readinessShape } from '#lib/server/readiness.ts'
import { paysForAnything } from '#lib/transfers/policy.ts'
import { EXAMPLE } from './examples.ts'
import { ApiResponse, inGroup, operation } from './operation.ts'

const configured = (what: string) => z.boolean().meta({ description: `whether ${what} is configured` })

export const healthShape = z.object({
  ok: z.literal(true),
  network: z.enum(['local', 'testnet']),
  idp: configured('an identity provider'),
  relay: configured('the batch relay'),
  sponsor: configured('a fee sponsor'),
})

const swept = (what: string) =>
  z
    .int()
    .nullable()
    .meta({ description: `${what}; null if that chore failed` })

const sweptShape = z.object({
  transfers: swept('open transfers that were looked up'),
  envelopes: swept('signed envelopes erased from old transfers'),
  contractors: swept('contractors that became ready'),
  archive: swept('events of the token archived'),
  lines: swept('lines of jobs that waited for a day, and failed'),
  channels: swept('channels of the relays compared with the ledger'),
  challenges: swept('used challenges deleted'),
  keys: swept('Idempotency-Keys deleted, a day after their requests'),
  counts: swept('counts of old refusals and settled transfers deleted, or subtracted from the costs of organisations'),
  events: swept('events published'),
  mails: swept('mails sent to contractors who were paid'),
  deliveries: swept('old deliveries to webhooks deleted'),
  tables: swept('tables of the embedded database analyzed'),
  webhooks: swept('attempts to deliver events to webhooks'),
}) satisfies z.ZodType<ChoreReport>

const READY = {
  version: '1.0.0',
  commit: '50a4d0f7a05e6b12ce6ef2cd0a1a8a1a5d1d7f10',
  database: { ok: true },
  ledger: { ok: true, latestLedger: 1_204_331, age: 3 },
  sponsor: { ok: true, address: EXAMPLE.employer, availableXlm: '9998.1234500' },
  relay: { ok: true, channels: 3, runs: true },
  archive: { ok: true, ingestedThrough: 1_204_331, finalThrough: 1_204_210, behind: 0, historyLeft: 120_960, gaps: 0 },
}
const METRICS_EXAMPLE = `# HELP payroll_transfers_total Decided sponsored transfers, by outcome.
# TYPE payroll_transfers_total counter
payroll_transfers_total{status="succeeded"} 128
# HELP payroll_http_requests_total API requests of this process, by method, route and status.
# TYPE payroll_http_requests_total counter
payroll_http_requests_total{method="POST",route="/transfer",status="200"} 128
`

export const SERVICE_OPERATIONS = inGroup('Service', [
  operation({
    id: 'getHealth',
    route: 'GET /health',
    selfContained: true,
    caller: 'anybody',
    summary: 'Check that the service is up, and what is configured',
    description: 'Uses neither the database nor the network.',
    response: {
      description: 'The service is up',
      schema: healthShape,
      example: { ok: true, network: 'testnet', idp: true, relay: true, sponsor: true },
    },
    handle: async ({ service: { settings, sponsor } }) => ({
      ok: true as const,
      network: settings.network.name,
      idp: settings.provider !== undefined,
      relay: settings.batch !== undefined,
      // GET /ready reports a missing token. The sponsor counts as configured anyway.
      sponsor: sponsor !== undefined && (settings.token === undefined || paysForAnything(sponsor.rules)),
    }),
  }),
  operation({
    id: 'getReadiness',
    route: 'GET /ready',
    selfContained: true,
    caller: 'anybody',
    extension: true,
    summary: 'Check that the service can reach its dependencies',
    description: 'Cached for five seconds.',
    response: { description: 'Every check passes', schema: readinessShape, example: { ok: true, ...READY } },
    otherResponses: {
      503: {
        description: 'A check fails',
        schema: readinessShape,
        example: { ok: false, ...READY, ledger: { ok: false, problem: 'the ledger cannot be reached' } },
      },
    },
    handle: async ({ service }) => {
      const state = await readiness(service)
      return new ApiResponse(state, state.ok ? {} : { status: 503, headers: { 'Retry-After': '5' } })
    },
  }),
  operation({
    id: 'getMetrics',
    route: 'GET /metrics',
    selfContained: true,
    caller: 'metrics',
    extension: true,
    summary: 'Get the metrics for Prometheus',
    response: {
      description: 'Prometheus text format 0.0.4',
      schema: z.string(),
      contentType: METRICS_TYPE,
      example: METRICS_EXAMPLE,
    },
    refusals: ['metrics-not-configured'],
    handle: ({ service }) => scrape(service),
  }),
  operation({
    id: 'sweep',
    route: 'GET /cron/sweep',
    selfContained: true,
    caller: 'scheduler',
    extension: true,
    summary: 'Run the periodic chores',
    description: 'For a scheduler, where no long-lived process runs them.',
    response: {
      description: 'How much each chore did',
      schema: sweptShape,
      example: {
        transfers: 0,
        envelopes: 0,
        contractors: 2,
        archive: 8,
        lines: 0,
        channels: 3,
        challenges: 14,
        keys: 2,
        counts: 3,
        events: 0,
        mails: 0,
        deliveries: 0,
        tables: 0,
        webhooks: 2,
      },
    },
    refusals: ['cron-not-configured'],
    handle: ({ service }) => runChores(service),
  }),
])
