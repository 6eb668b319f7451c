import { z } from 'zod'
import { simplify } from '../openapi.ts'
import type { JsonSchema } from '../operation-refusals.ts'

/** A field of a body, a response or a query, as the reference shows it. */
export interface Field {
  /** with the path in the body: `rate.amount`, `rows[].name` */
  name: string
  type: string
  isRequired: boolean
  description: string
}

/** The fields of an object's schema, each followed by the fields within it. */
export function fieldsOf(schema: z.ZodType, io: 'input' | 'output'): Field[] {
  const json = z.toJSONSchema(schema, { io, unrepresentable: 'any', override: simplify })
  return fieldsWithin(json as JsonSchema, '')
}

function fieldsWithin(schema: JsonSchema, prefix: string): Field[] {
  const object = objectIn(schema)
  return Object.entries(object?.properties ?? {}).flatMap(([key, field]) => {
    const name = `${prefix}${key}`
    const isArray = arrayIn(field) !== undefined
    const inner = fieldsWithin(arrayIn(field)?.items ?? field, `${name}${isArray ? '[].' : '.'}`)
    const isRequired = object?.required?.includes(key) ?? false
    const description = [field.description ?? '', limitsOf(field)].filter((part) => part !== '').join('; ')
    return [{ name, type: typeOf(field), isRequired, description }, ...inner]
  })
}

const alternatives = (schema: JsonSchema): readonly JsonSchema[] => schema.anyOf ?? [schema]
const objectIn = (schema: JsonSchema) => alternatives(schema).find(({ properties }) => properties !== undefined)
const arrayIn = (schema: JsonSchema) => alternatives(schema).find(({ type }) => type === 'array')

function typeOf(schema: JsonSchema): string {
  if (schema.anyOf) return [...new Set(schema.anyOf.map(typeOf))].join(' or ')
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' or ')
  if (schema.type === 'array') return `array of ${schema.items ? typeOf(schema.items) : 'anything'}`
  return schema.format ?? schema.type ?? 'anything'
}

/** The limits of a value that its type does not include. */
function limitsOf(schema: JsonSchema): string {
  const { minimum, maximum, maxLength, minItems, maxItems } = schema
  if (minimum !== undefined && maximum !== undefined) return `${minimum} to ${maximum}`
  if (minimum !== undefined) return `at least ${minimum}`
  if (maximum !== undefined) return `at most ${maximum}`
  if (maxLength !== undefined) return `at most ${maxLength} characters`
  if (minItems !== undefined && maxItems !== undefined) return `${minItems} to ${maxItems} items`
  return maxItems === undefined ? '' : `at most ${maxItems} items`
}
