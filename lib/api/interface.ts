import { z } from 'zod'
import { answerPrepared, type Prepared, prepare } from '#lib/http/prepared.ts'
import { ARCHIVE_OPERATIONS } from './archive.ts'
import { BATCH_OPERATIONS } from './batches.ts'
import { CALL_OPERATIONS } from './calls.ts'
import { CONTRACTOR_OPERATIONS } from './contractors.ts'
import { DEVICE_OPERATIONS } from './device.ts'
import { EVENT_OPERATIONS } from './events.ts'
import { FUNDING_OPERATIONS } from './funding.ts'
import { INVITE_OPERATIONS } from './invites.ts'
import { JOB_OPERATIONS } from './jobs.ts'
import { ME_OPERATIONS } from './me.ts'
import { openApiDocument } from './openapi.ts'
import { inGroup, type Operation, operation } from './operation.ts'
import { PAYOUT_OPERATIONS } from './payouts.ts'
import { RELAY_OPERATIONS } from './relay.ts'
import { RUN_OPERATIONS } from './runs.ts'
import { SERVICE_OPERATIONS } from './service.ts'
import { SESSION_OPERATIONS } from './sessions.ts'
import { TRANSFER_OPERATIONS } from './transfers.ts'
import { WEBHOOK_OPERATIONS } from './webhooks.ts'

// Declared here because the document describes all operations, this one included.
const getDocument = operation({
  id: 'getDocument',
  route: 'GET /openapi.json',
  caller: 'anybody',
  extension: true,
  selfContained: true,
  summary: 'This document',
  response: {
    description: 'OpenAPI 3.1',
    schema: z.looseObject({ openapi: z.string(), info: z.looseObject({ version: z.string() }) }),
    cached: true,
    example: { openapi: '3.1.0', info: { title: 'Confidential payroll', version: '1.0.0' } },
  },
  handle: async ({ service, request }) => {
    return answerPrepared(request, preparedDocument(`${service.settings.publicUrl}/api`))
  },
})

/** Every operation of the API, in the order of the reference. */
export const OPERATIONS: readonly Operation[] = [
  ...SESSION_OPERATIONS,
  ...TRANSFER_OPERATIONS,
  ...CALL_OPERATIONS,
  ...CONTRACTOR_OPERATIONS,
  ...INVITE_OPERATIONS,
  ...BATCH_OPERATIONS,
  ...RUN_OPERATIONS,
  ...PAYOUT_OPERATIONS,
  ...EVENT_OPERATIONS,
  ...WEBHOOK_OPERATIONS,
  ...ME_OPERATIONS,
  ...FUNDING_OPERATIONS,
  ...JOB_OPERATIONS,
  ...RELAY_OPERATIONS,
  ...ARCHIVE_OPERATIONS,
  ...DEVICE_OPERATIONS,
  ...SERVICE_OPERATIONS,
  ...inGroup('Service', [getDocument]),
]

const prepared = new Map<string, Prepared>()

/** The document as it is sent, cached because generating it takes milliseconds. */
function preparedDocument(baseUrl: string): Prepared {
  const document = prepared.get(baseUrl) ?? prepare(JSON.stringify(interfaceDocument(baseUrl)), 'application/json')
  prepared.set(baseUrl, document)
  return document
}

/**
 * The API as an OpenAPI 3.1 document.
 * @param baseUrl such as `https://payroll.example/api`
 */
export const interfaceDocument = (baseUrl: string) => openApiDocument(OPERATIONS, baseUrl)
