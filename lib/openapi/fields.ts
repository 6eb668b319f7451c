/** The part of JSON Schema that the document uses. */
export interface Schema {
  $ref?: string
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  format?: string
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  description?: string
  'x-extension'?: boolean
}

/** A field as the reference lists it; one of a list's is `rows[].name`. */
export interface Field {
  name: string
  type: string
  isRequired: boolean
  note: string
  isExtension: boolean
}

const REFERENCE = '#/components/schemas/'

/** Every field of `schema`, those of its objects and lists after it. A named schema is listed wherever it is used. */
export function fieldsOf(schema: Schema, components: Record<string, Schema>, prefix = ''): Field[] {
  const { properties = {}, required = [] } = resolve(schema, components)
  return Object.entries(properties).flatMap(([name, given]) => {
    const field = { ...resolve(given, components), ...given }
    const own: Field = {
      name: prefix + name,
      type: typeOf(given),
      isRequired: required.includes(name),
      note: [field.description, limitsOf(field)].filter(Boolean).join('; '),
      isExtension: field['x-extension'] === true,
    }
    return [own, ...insideOf(field, components, prefix + name)]
  })
}

function insideOf(field: Schema, components: Record<string, Schema>, name: string): Field[] {
  const list = field.items && resolve(field.items, components)
  if (list?.properties) return fieldsOf(list, components, `${name}[].`)
  const object = [field, ...(field.anyOf ?? [])].find(({ properties }) => properties)
  return object ? fieldsOf(object, components, `${name}.`) : []
}

function resolve(schema: Schema, components: Record<string, Schema>): Schema {
  return schema.$ref === undefined ? schema : (components[schema.$ref.replace(REFERENCE, '')] ?? {})
}

/** A type in words: `string`, `object or null`, `list of Payout`, `draft | ready`. */
export function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) return schema.$ref.replace(REFERENCE, '')
  if ('const' in schema) return String(schema.const)
  if (schema.enum) return schema.enum.join(' | ')
  if (schema.anyOf) return [...new Set(schema.anyOf.map(typeOf))].join(' or ')
  if (schema.type === 'array') return `list of ${typeOf(schema.items ?? {})}`
  if (schema.format === 'date-time') return 'date-time'
  return [schema.type ?? 'anything'].flat().join(' or ')
}

function limitsOf({ minimum, maximum, minLength, maxLength }: Schema): string {
  if (minimum !== undefined && maximum !== undefined) return `${minimum} to ${maximum}`
  if (maxLength !== undefined) return `${minLength ? `${minLength} to ` : 'at most '}${maxLength} characters`
  return ''
}
