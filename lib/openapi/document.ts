import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi'
import type { ZodOpenApiOverrideContext } from 'zod-openapi/api'
import { batchProgressShape, batchShape } from '#lib/directory/batches.ts'
import { contractorShape } from '#lib/directory/contractors/schema.ts'
import { meShape } from '#lib/directory/me.ts'
import { payoutShape } from '#lib/directory/payouts/payouts.ts'
import { BATCH_OPERATIONS } from './batches.ts'
import { CONTRACTOR_OPERATIONS } from './contractors.ts'
import { DEVICE_OPERATIONS } from './device.ts'
import { FUNDING_OPERATIONS } from './funding.ts'
import { ME_OPERATIONS } from './me.ts'
import { OPERATION_GROUPS, type Operation } from './operation.ts'
import { errorShape, presentOperation, SECURITY_SCHEMES } from './presentation.ts'
import { jobShape, RELAY_OPERATIONS } from './relay.ts'
import { healthShape, readinessShape, SERVICE_OPERATIONS } from './service.ts'
import { challengeShape, SESSION_OPERATIONS, sessionShape } from './sessions.ts'
import { TRANSFER_OPERATIONS, transferShape } from './transfers.ts'

/** Every operation of the interface, in the order of the reference. */
export const OPERATIONS: readonly Operation[] = [
  ...SESSION_OPERATIONS,
  ...TRANSFER_OPERATIONS,
  ...CONTRACTOR_OPERATIONS,
  ...BATCH_OPERATIONS,
  ...ME_OPERATIONS,
  ...FUNDING_OPERATIONS,
  ...RELAY_OPERATIONS,
  ...DEVICE_OPERATIONS,
  ...SERVICE_OPERATIONS,
]

const DESCRIPTION = `Sessions, fee sponsorship and a payout back office for confidential payroll on the Stellar test network.

What a sponsored transfer pays is in no call and no answer: it is inside the proof that the client builds. Told, by who
wants to, are a contractor's \`rate\`, kept as it is given, and the \`amounts\` of a batch job, sealed for the relay.

Bodies are JSON, at most 256 KiB; no body counts as \`{}\`, and unknown fields are ignored. Times are ISO 8601. In a message,
\`{name}\` stands for what varies. What carries \`x-extension\` is not in the specification of the interface. An unknown route,
or a method that a route does not have, is a 404 whose \`message\` reads \`Route GET:/nope not found\`.`

// Making it tries every schema with much that is wrong: some 20 ms of work, once for an address.
const known = new Map<string, ReturnType<typeof composeDocument>>()

/**
 * The interface as an OpenAPI 3.1 document, made of the schemas that the routes parse with.
 * @param baseUrl where the interface is, such as `https://payroll.example/api`
 */
export function openApiDocument(baseUrl: string) {
  const document = known.get(baseUrl) ?? composeDocument(baseUrl)
  known.set(baseUrl, document)
  return document
}

function composeDocument(baseUrl: string) {
  return createDocument(
    {
      openapi: '3.1.0',
      info: { title: 'Confidential payroll', version: '1.0.0', description: DESCRIPTION, license: { name: 'MIT' } },
      servers: [{ url: baseUrl }],
      tags: Object.entries(OPERATION_GROUPS).map(([name, description]) => ({ name, description })),
      paths: presentPaths(),
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
          Error: errorShape,
        },
      },
    },
    { override: simplify },
  )
}

function presentPaths(): ZodOpenApiPathsObject {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {}
  for (const operation of OPERATIONS) {
    paths[operation.path] = { ...paths[operation.path], [operation.method]: presentOperation(operation) }
  }
  return paths
}

/** What zod says of a type by itself says less to a reader than its format does. */
function simplify({ jsonSchema, zodSchema }: ZodOpenApiOverrideContext): void {
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern
  // In a query everything is text; what it must look like is said by type and range.
  if (jsonSchema.type === 'integer') delete jsonSchema.pattern
  if (jsonSchema.type === 'integer' && jsonSchema.maximum === Number.MAX_SAFE_INTEGER) {
    delete jsonSchema.minimum
    delete jsonSchema.maximum
  }
  // What takes the place of a bad field is the verb's business: the row becomes an error.
  if (zodSchema._zod.def.type === 'catch') delete jsonSchema.default
}
