import { z } from 'zod'
import type { RefusalCode } from '#lib/refusal/refusal.ts'
import { CALLERS } from '../caller.ts'
import { OPERATIONS } from '../interface.ts'
import { GROUPS, type Operation, type RequestSpec, type ResponseSpec } from '../operation.ts'
import { refusalsOf } from '../operation-refusals.ts'
import { headersOf, IDEMPOTENCY_KEY } from '../presentation.ts'
import { type Field, fieldsOf } from './fields.ts'

export type { Field }

/** A parameter of the path or the query, with an example. */
export interface Parameter extends Field {
  example: string
}

interface Content {
  fields: Field[]
  /** JSON or text */
  example: string
}

/** An operation as the reference shows it. */
export interface OperationReference {
  id: string
  method: string
  path: string
  summary: string
  description: string
  isExtension: boolean
  /** the token that it requires */
  token: 'session' | 'metrics' | 'scheduler' | undefined
  /** the role that the session's user requires */
  role: string | undefined
  parameters: Parameter[]
  query: Parameter[]
  /** request headers */
  headers: Parameter[]
  body: (Content & { acceptsForm: boolean }) | undefined
  /** undefined if it always refuses */
  response: (Content & { description: string; headers: string[] }) | undefined
  /** the codes that it can respond with, by status */
  refusals: [status: number, codes: RefusalCode[]][]
}

/** A section of the reference. */
export interface Group {
  /** the last segment of the section's path */
  slug: string
  name: string
  description: string
  operations: OperationReference[]
}

let described: Group[] | undefined

/** The whole reference, derived once from the declarations of the operations. */
export function reference(): readonly Group[] {
  described ??= Object.entries(GROUPS).map(([name, description]) => ({
    slug: name.toLowerCase().replaceAll(' ', '-'),
    name,
    description,
    operations: OPERATIONS.filter(({ group }) => group === name).map(describe),
  }))
  return described
}

function describe(operation: Operation): OperationReference {
  const { id, method, path, summary, description = '', extension, caller, query, body, response } = operation
  const { scheme, role } = { role: operation.role, ...CALLERS[caller] }
  return {
    ...{ id, method, path, summary, description, token: scheme, role },
    isExtension: extension ?? false,
    parameters: Object.entries(operation.parameters ?? {}).map(([name, parameter]) => ({
      ...{ name, type: 'string', isRequired: true },
      ...parameter,
    })),
    query: query ? describeQuery(query) : [],
    headers: operation.idempotent ? [{ type: 'string', isRequired: false, ...IDEMPOTENCY_KEY }] : [],
    body: body && { ...describeRequest(body), acceptsForm: body.form ?? false },
    response: response && describeResponse(response, operation.idempotent !== undefined),
    refusals: [...refusalsOf(operation)],
  }
}

function describeRequest({ schema, docsSchema = schema, example }: RequestSpec<z.ZodType>): Content {
  return { fields: fieldsOf(docsSchema, 'input'), example: JSON.stringify(example, null, 2) }
}

function describeQuery(query: RequestSpec<z.ZodType>): Parameter[] {
  return describeRequest(query).fields.map((field) => ({ ...field, example: String(query.example[field.name] ?? '') }))
}

function describeResponse(response: ResponseSpec<z.ZodType>, isIdempotent: boolean) {
  const { description, schema, example } = response
  return {
    description,
    fields: schema instanceof z.ZodNever ? [] : fieldsOf(schema, 'output'),
    example: typeof example === 'string' ? example : JSON.stringify(example, null, 2),
    headers: Object.entries(headersOf(response, isIdempotent)).map(
      ([name, header]) => `${name}: ${header.description}`,
    ),
  }
}
