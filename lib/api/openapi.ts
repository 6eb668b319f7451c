import { createDocument, type ZodOpenApiOperationObject } from 'zod-openapi'
import type { ZodOpenApiOverrideContext } from 'zod-openapi/api'
import { challengeShape } from '#lib/auth/sep10/challenge.ts'
import { sessionShape } from '#lib/auth/session.ts'
import { batchShape } from '#lib/directory/batches/batches.ts'
import { batchProgressShape } from '#lib/directory/batches/status.ts'
import { contractorShape } from '#lib/directory/contractors/schema.ts'
import { payoutShape } from '#lib/directory/payouts/payouts.ts'
import { jobShape } from '#lib/relay/job.ts'
import { readinessShape } from '#lib/server/readiness.ts'
import { callerShape } from './me.ts'
import { GROUPS, type Operation } from './operation.ts'
import { presentOperation, refusalShape } from './presentation.ts'
import { healthShape } from './service.ts'
import { transferShape } from './transfers.ts'

/** The rules that apply to every operation, as Markdown. */
export const DESCRIPTION = `Sessions, fee sponsorship and a payout back office for confidential payroll on the Stellar test network.

The amount of a sponsored transfer never appears in a request or response: it is inside the proof that the client
builds. Two amounts do pass through the API: a contractor's \`rate\` (\`amount\` in an import), which is stored as it was sent
and is best left out, and the \`amounts\` of a batch job, encrypted to the relay.

Bodies are JSON of at most 256 KiB. A missing body counts as \`{}\`, and unknown fields are ignored. Times are ISO 8601.
Every refusal has an \`error\` for people and a \`code\` for programs; several bad fields are listed in \`fields\`. Every
response has an \`X-Request-Id\`: yours, or a new one. \`x-extension\` marks additions to the specification. An unknown
route, or a method that a route does not have, is a 404 with \`{ statusCode, error, message }\`.`

const SECURITY_SCHEMES = {
  session: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description:
      'The `session` of a sign-in. It expires at its `exp`, after an hour unless SESSION_TTL says otherwise.',
  },
  metrics: { type: 'http', scheme: 'bearer', description: 'The operator’s METRICS_TOKEN.' },
  scheduler: { type: 'http', scheme: 'bearer', description: 'The operator’s CRON_SECRET.' },
} as const

/** The OpenAPI document of `operations`, generated from the schemas that parse requests. */
export function openApiDocument(operations: readonly Operation[], baseUrl: string) {
  return createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: 'Confidential payroll',
        version: '1.0.0',
        description: DESCRIPTION,
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: baseUrl }],
      tags: Object.entries(GROUPS).map(([name, description]) => ({ name, description })),
      paths: presentPaths(operations),
      components: {
        securitySchemes: SECURITY_SCHEMES,
        schemas: {
          Session: sessionShape,
          Challenge: challengeShape,
          TransferResult: transferShape,
          Contractor: contractorShape,
          Batch: batchShape,
          BatchProgress: batchProgressShape,
          Payout: payoutShape,
          BatchJob: jobShape,
          Me: callerShape,
          Health: healthShape,
          Readiness: readinessShape,
          Refusal: refusalShape,
        },
      },
    },
    { override: simplify },
  )
}

function presentPaths(operations: readonly Operation[]) {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {}
  for (const operation of operations) {
    paths[operation.path] = { ...paths[operation.path], [operation.method.toLowerCase()]: presentOperation(operation) }
  }
  return paths
}

/** Removes the patterns and limits that zod adds where the format or type is enough. */
export function simplify({ jsonSchema }: Pick<ZodOpenApiOverrideContext, 'jsonSchema'>): void {
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern
  // Numbers in a query are strings, so zod adds a pattern. Type and range are enough.
  if (jsonSchema.type === 'integer') delete jsonSchema.pattern
  if (jsonSchema.type === 'integer' && jsonSchema.maximum === Number.MAX_SAFE_INTEGER) {
    delete jsonSchema.minimum
    delete jsonSchema.maximum
  }
}
