import { createDocument, type ZodOpenApiOperationObject } from 'zod-openapi'
import type { ZodOpenApiOverrideContext } from 'zod-openapi/api'
import { challengeShape } from '#lib/auth/sep10/challenge.ts'
import { sessionShape } from '#lib/auth/session.ts'
import { batchShape } from '#lib/directory/batches/batches.ts'
import { batchProgressShape } from '#lib/directory/batches/status.ts'
import { contractorShape } from '#lib/directory/contractors/schema.ts'
import { meShape } from '#lib/directory/me.ts'
import { payoutShape } from '#lib/directory/payouts/payouts.ts'
import { jobShape } from '#lib/relay/job.ts'
import { readinessShape } from '#lib/server/readiness.ts'
import { GROUPS, type Operation } from './operation.ts'
import { presentOperation, refusalShape } from './presentation.ts'
import { healthShape } from './service.ts'
import { transferShape } from './transfers.ts'

const DESCRIPTION = `Sessions, fee sponsorship and a payout back office for confidential payroll on the Stellar test network.

What a sponsored transfer pays is in no call and no answer: it is inside the proof that the client builds. Two amounts are
told on purpose: a contractor's \`rate\`, kept as it is given, and the \`amounts\` of a batch job, sealed for the relay.

Bodies are JSON, at most 256 KiB; no body counts as \`{}\`, and unknown fields are ignored. Times are ISO 8601. Every
refusal has an \`error\` for people and a \`code\` for programs; several bad fields are listed in \`fields\`. Every answer has
an \`X-Request-Id\`: the one that you send, or a new one. What carries \`x-extension\` is not in the specification of the
interface. An unknown route, or a method that a route does not have, is a 404 with \`{ statusCode, error, message }\`.`

const SECURITY_SCHEMES = {
  session: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description:
      'The `session` of a sign-in. Its `exp` says how long it holds: an hour, unless the operator has set another time.',
  },
  metrics: { type: 'http', scheme: 'bearer', description: 'METRICS_TOKEN, as the operator has set it.' },
  scheduler: { type: 'http', scheme: 'bearer', description: 'CRON_SECRET, as the operator has set it.' },
} as const

/** The OpenAPI document of `operations`, made from the schemas that requests are parsed with. */
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
          Me: meShape,
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

/** Removes the patterns and limits that the validator adds to a type, where the format or the type says enough. */
function simplify({ jsonSchema }: ZodOpenApiOverrideContext): void {
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern
  // A query holds numbers as text, so the validator adds a pattern. Type and range say enough.
  if (jsonSchema.type === 'integer') delete jsonSchema.pattern
  if (jsonSchema.type === 'integer' && jsonSchema.maximum === Number.MAX_SAFE_INTEGER) {
    delete jsonSchema.minimum
    delete jsonSchema.maximum
  }
}
