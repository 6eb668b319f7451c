import type { Field, Parameter } from '#lib/api/reference/reference.ts'
import { Prose } from './prose.tsx'

interface FieldTableProps {
  title: string
  fields: readonly (Field | Parameter)[]
  /** in a request, the required fields are marked; in a response, the optional ones */
  of: 'request' | 'response'
}

/** The fields of a body, a response or a query. */
export function FieldTable({ title, fields, of }: FieldTableProps) {
  if (fields.length === 0) return null
  return (
    <table className="mt-2 w-full text-[0.8125rem]">
      <caption className="pb-1 text-left text-xs text-faint">{title}</caption>
      <thead className="sr-only">
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Type and description</th>
        </tr>
      </thead>
      <tbody className="divide-y divide-line border-y border-line">
        {fields.map(({ name, type, isRequired, description }) => (
          <tr key={name} className="align-baseline max-sm:block max-sm:py-1">
            <th scope="row" className="py-1 pr-4 text-left font-normal max-sm:block max-sm:py-0 sm:w-64">
              <code className="[overflow-wrap:anywhere]">{name}</code>
              {of === 'request' && isRequired && <span className="text-xs text-busy"> required</span>}
              {of === 'response' && !isRequired && <span className="text-xs text-faint"> optional</span>}
            </th>
            <td className="py-1 text-soft [overflow-wrap:anywhere] max-sm:block max-sm:py-0">
              <span className="text-faint">{type}</span>
              {description !== '' && (
                <>
                  {' · '}
                  <Prose text={description} />
                </>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
