/** The part of JSON Schema that the document uses. */
export interface Schema {
  $ref?: string
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: Schema | boolean
  items?: Schema
  description?: string
}

const PLAIN: Record<string, string> = {
  string: 'string',
  number: 'number',
  integer: 'number',
  boolean: 'boolean',
  null: 'null',
}

/** A schema as a TypeScript type. */
export function typeText(schema: Schema, indent = ''): string {
  if (schema.$ref !== undefined) return schema.$ref.replace('#/components/schemas/', '')
  if ('const' in schema) return literal(schema.const)
  if (schema.enum) return union(schema.enum.map(literal))
  if (schema.anyOf) return union(schema.anyOf.map((one) => typeText(one, indent)))
  if (Array.isArray(schema.type)) return union(schema.type.map((type) => typeText({ ...schema, type }, indent)))
  if (schema.type === 'array') return `Array<${typeText(schema.items ?? {}, indent)}>`
  if (schema.type === 'object') return objectText(schema, indent)
  return PLAIN[schema.type ?? ''] ?? 'unknown'
}

const literal = (value: unknown) =>
  typeof value === 'string' && !/['\\\n]/.test(value) ? `'${value}'` : JSON.stringify(value)

const union = (types: string[]) => [...new Set(types)].join(' | ')

function objectText({ properties = {}, required = [], additionalProperties }: Schema, indent: string): string {
  const inner = `${indent}  `
  const fields = Object.entries(properties).map(([name, field]) => {
    const note = field.description === undefined ? '' : `${inner}/** ${field.description} */\n`
    return `${note}${inner}${name}${required.includes(name) ? '' : '?'}: ${typeText(field, inner)}\n`
  })
  const others = typeof additionalProperties === 'object' ? typeText(additionalProperties, inner) : undefined
  if (others !== undefined) fields.push(`${inner}[name: string]: ${others}\n`)
  return fields.length === 0 ? 'Record<string, unknown>' : `{\n${fields.join('')}${indent}}`
}
