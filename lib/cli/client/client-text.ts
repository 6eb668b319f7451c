import { readFileSync } from 'node:fs'
import { type Schema, typeText } from './type-text.ts'

/** What of an OpenAPI document a client is made of. */
export interface ClientDocument {
  info: { title: string; version: string }
  components: { schemas: Record<string, Schema> }
  paths: Record<string, Record<string, Described>>
}

interface Media {
  content?: Record<string, { schema?: Schema }>
}
interface Described {
  operationId: string
  summary: string
  parameters?: { in: string; name: string; required?: boolean; schema: Schema; description?: string }[]
  requestBody?: Media & { required?: boolean }
  responses: Record<string, Media & { headers?: Record<string, unknown> }>
}

/** The source of a TypeScript client for the interface that `document` describes. It imports nothing. */
export function clientText({ info, components, paths }: ClientDocument): string {
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, described]) => operationText(method.toUpperCase(), path, described)),
  )
  return [
    `// The client of "${info.title}" ${info.version}, made by \`npm run client\`: make it again rather than change it.\n`,
    readFileSync(new URL('transport.ts', import.meta.url), 'utf8'),
    ...Object.entries(components.schemas).map(([name, schema]) => declaration(name, schema)),
    ...operations.flatMap(({ types }) => types),
    `/** A client of the service: a method for each operation. */
export function createPayrollClient(options: PayrollClientOptions) {
  const { call, pages } = openTransport(options)
  return {
${operations.flatMap(({ methods }) => methods).join('')}  }
}
`,
    'export type PayrollClient = ReturnType<typeof createPayrollClient>\n',
  ].join('\n')
}

const declaration = (name: string, schema: Schema) => `export type ${name} = ${typeText(schema)}\n`

/** An operation as methods of the client, and the types that these have need of. */
function operationText(method: string, path: string, { operationId, summary, ...described }: Described) {
  const { parameters = [], requestBody, responses } = described
  const types: string[] = []
  const named = (part: string, schema: Schema) => {
    if (schema.$ref !== undefined) return typeText(schema)
    const name = `${operationId.charAt(0).toUpperCase()}${operationId.slice(1)}${part}`
    types.push(declaration(name, schema))
    return name
  }
  const query = querySchema(parameters)
  const body = schemaOf(requestBody)
  const takes = [
    ...parameters.filter(({ in: place }) => place === 'path').map(({ name }) => `${name}: string`),
    ...(query ? [`query: ${named('Query', query)}${isOptional(query) ? ' = {}' : ''}`] : []),
    ...(body ? [`body: ${named('Body', body)}${requestBody?.required ? '' : ' = {}'}`] : []),
  ].join(', ')
  const quote = /\{/.test(path) ? '`' : "'"
  const place = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => `\${encodeURIComponent(${name})}`)
  const given = [`method: '${method}'`, `path: ${quote}${place}${quote}`, query && 'query', body && 'body']
  const call = `{ ${given.filter((part) => part !== undefined).join(', ')} }`
  const answer = answerText(responses['200'], (schema) => named('Answer', schema))
  const methods = [`    /** ${summary} */\n    ${operationId}: (${takes}) => call<${answer}>(${call}),\n`]
  if (responses['200']?.headers?.Link !== undefined) {
    methods.push(
      `    /** The same, page by page. */\n    ${operationId}Pages: (${takes}) => pages<${answer}>(${call}),\n`,
    )
  }
  return { types, methods }
}

function querySchema(parameters: NonNullable<Described['parameters']>): Schema | undefined {
  const query = parameters.filter(({ in: place }) => place === 'query')
  if (query.length === 0) return undefined
  const properties = query.map(({ name, schema, description }) => {
    return [name, { ...schema, ...(description !== undefined && { description }) }]
  })
  return {
    type: 'object',
    properties: Object.fromEntries(properties),
    required: query.flatMap(({ name, required }) => (required ? name : [])),
  }
}

const isOptional = ({ required = [] }: Schema) => required.length === 0
const schemaOf = (media: Media | undefined) => media?.content?.['application/json']?.schema

/** What the 200 is: nothing comes back from what never succeeds, and what is no JSON is text. */
function answerText(response: Media | undefined, named: (schema: Schema) => string): string {
  if (!response) return 'never'
  const schema = schemaOf(response)
  return schema ? named(schema) : 'string'
}
