import { interfaceDocument } from '#lib/api/operations.ts'
import { type Field, fieldsOf, type Schema } from './fields.ts'

/** The document as people read it: what refers to something else is resolved. */
export interface Reference {
  title: string
  version: string
  description: string
  baseUrl: string
  groups: ReferenceGroup[]
}

export interface ReferenceGroup {
  name: string
  /** of its heading */
  anchor: string
  description: string
  operations: ReferenceOperation[]
}

export interface ReferenceOperation {
  id: string
  method: string
  path: string
  summary: string
  description: string
  isExtension: boolean
  /** what to send as a Bearer token */
  token: 'session' | 'metrics' | 'scheduler' | undefined
  needsEmployer: boolean
  parameters: ReferenceParameter[]
  body: { fields: Field[]; example: unknown; types: string[]; isRequired: boolean } | undefined
  answers: ReferenceAnswer[]
}

export interface ReferenceParameter extends Field {
  place: 'path' | 'query'
  example: string | undefined
}

export interface ReferenceAnswer {
  status: number
  description: string
  headers: string[]
  type: string
  fields: Field[]
  example: unknown
  /** what it may say, for an error */
  messages: string[]
}

interface Media {
  schema?: Schema
  example?: unknown
  examples?: Record<string, { value: { error: string } }>
}
interface Described {
  operationId: string
  tags: string[]
  summary: string
  description?: string
  'x-extension'?: boolean
  'x-role'?: string
  security: Record<string, unknown>[]
  parameters?: { in: 'path' | 'query'; name: string; required?: boolean; schema: Schema & { examples?: string[] } }[]
  requestBody?: { required?: boolean; content: Record<string, Media> }
  responses: Record<string, { description: string; headers?: object; content?: Record<string, Media> }>
}

/** The reference of the interface at `baseUrl`, group by group. */
export function readReference(baseUrl: string): Reference {
  const { info, tags = [], paths = {}, components } = interfaceDocument(baseUrl)
  const schemas = (components?.schemas ?? {}) as Record<string, Schema>
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item as Record<string, Described>).map(([method, described]) => ({
      group: described.tags[0],
      operation: readOperation(method.toUpperCase(), path, described, schemas),
    })),
  )
  return {
    title: info.title,
    version: info.version,
    description: info.description ?? '',
    baseUrl,
    groups: tags.map(({ name, description = '' }) => ({
      name,
      anchor: name.toLowerCase().replaceAll(' ', '-'),
      description,
      operations: operations.filter(({ group }) => group === name).map(({ operation }) => operation),
    })),
  }
}

function readOperation(
  method: string,
  path: string,
  described: Described,
  schemas: Record<string, Schema>,
): ReferenceOperation {
  const { operationId, summary, description = '', security, parameters = [], requestBody, responses } = described
  const [token] = Object.keys(security[0] ?? {})
  const body = requestBody?.content['application/json']
  return {
    id: operationId,
    method,
    path,
    summary,
    description,
    isExtension: described['x-extension'] === true,
    token: token as ReferenceOperation['token'],
    needsEmployer: described['x-role'] === 'employer',
    parameters: parameters.flatMap((parameter) => readParameter(parameter, schemas)),
    body: body && {
      fields: fieldsOf(body.schema ?? {}, schemas),
      example: body.example,
      types: Object.keys(requestBody?.content ?? {}),
      isRequired: requestBody?.required === true,
    },
    answers: Object.entries(responses).map(([status, { description, headers = {}, content = {} }]) => {
      const [[type, media] = ['', {} as Media]] = Object.entries(content)
      const messages = Object.values(media.examples ?? {}).map(({ value }) => value.error)
      const names = Object.keys(headers)
      const fields = messages.length > 0 ? [] : fieldsOf(media.schema ?? {}, schemas)
      return { status: Number(status), description, headers: names, type, fields, example: media.example, messages }
    }),
  }
}

function readParameter(
  { in: place, name, required = false, schema }: NonNullable<Described['parameters']>[number],
  schemas: Record<string, Schema>,
): ReferenceParameter[] {
  const fields = fieldsOf({ properties: { [name]: schema }, required: required ? [name] : [] }, schemas)
  return fields.map((field) => ({ ...field, place, example: schema.examples?.[0] }))
}
