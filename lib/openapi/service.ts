import { z } from 'zod'
import { EXAMPLE } from './examples.ts'
import type { Operation } from './operation.ts'

const configured = (what: string) => z.boolean().meta({ description: `whether ${what} is configured` })

export const healthShape = z.object({
  ok: z.literal(true),
  network: z.enum(['local', 'testnet']),
  idp: configured('an identity provider'),
  relay: configured('the batch relay'),
  sponsor: configured('a fee sponsor'),
})

const check = z
  .object({ ok: z.boolean() })
  .catchall(z.union([z.string(), z.number(), z.boolean()]))
  .meta({ description: 'whether it is there, and details: a `problem` in words where it is not' })

export const readinessShape = z.object({
  ok: z.boolean().meta({ description: 'whether all of them are' }),
  database: check,
  ledger: check,
  sponsor: check,
  relay: check.optional(),
})

const shared = { method: 'get', group: 'Service', selfContained: true } as const
const READY = {
  database: { ok: true },
  ledger: { ok: true, latestLedger: 1_204_331, age: 3 },
  sponsor: { ok: true, address: EXAMPLE.employer, availableXlm: '9998.1234500' },
}
const METRICS_EXAMPLE = `# HELP payroll_transfers_total Sponsored transfers whose outcome is known, by outcome.
# TYPE payroll_transfers_total counter
payroll_transfers_total{status="success"} 128
# HELP payroll_http_requests_total Requests to the interface, by method, route and status, of this process.
# TYPE payroll_http_requests_total counter
payroll_http_requests_total{method="POST",route="/transfer",status="200"} 128
`

export const SERVICE_OPERATIONS: Operation[] = [
  {
    ...shared,
    id: 'getHealth',
    path: '/health',
    caller: 'anybody',
    summary: 'Whether the service is up, and what is configured',
    description: 'Touches neither database nor network.',
    answer: {
      description: 'It is up',
      schema: healthShape,
      example: { ok: true, network: 'testnet', idp: true, relay: true, sponsor: true },
    },
  },
  {
    ...shared,
    id: 'getReadiness',
    path: '/ready',
    caller: 'anybody',
    extension: true,
    summary: 'Whether what the service needs is there',
    description: 'Looked up at most every five seconds, whoever asks.',
    answer: { description: 'All is well', schema: readinessShape, example: { ok: true, ...READY } },
    otherAnswers: {
      503: {
        description: 'Something is not there',
        schema: readinessShape,
        example: { ok: false, ...READY, ledger: { ok: false, problem: 'the ledger cannot be reached' } },
      },
    },
  },
  {
    ...shared,
    id: 'getMetrics',
    path: '/metrics',
    caller: 'metrics',
    extension: true,
    selfContained: true,
    summary: 'What the service counts, for Prometheus',
    answer: {
      description: 'Prometheus text format 0.0.4',
      contentType: 'text/plain; version=0.0.4; charset=utf-8',
      example: METRICS_EXAMPLE,
    },
    refusals: { 501: ['metrics are not configured'] },
  },
  {
    ...shared,
    id: 'getDocument',
    path: '/openapi.json',
    caller: 'anybody',
    extension: true,
    summary: 'This document',
    answer: {
      description: 'OpenAPI 3.1',
      schema: z.looseObject({ openapi: z.string(), info: z.looseObject({ version: z.literal('1.0.0') }) }),
      example: { openapi: '3.1.0', info: { title: 'Confidential payroll', version: '1.0.0' } },
    },
  },
]
