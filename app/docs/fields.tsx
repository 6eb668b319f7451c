import type { Field } from '#lib/openapi/fields.ts'
import { Inline } from './prose.tsx'

/** The fields of a body or of a query; nothing if there are none. */
export function Fields({ title, fields }: { title: string; fields: readonly Field[] }) {
  if (fields.length === 0) return null
  return (
    <table className="w-full border-collapse text-left">
      <caption className="pb-1.5 text-left text-sm font-semibold">{title}</caption>
      <thead className="sr-only">
        <tr>
          <th scope="col">Field</th>
          <th scope="col">Type and meaning</th>
        </tr>
      </thead>
      <tbody className="divide-y divide-line border-y border-line">
        {fields.map(({ name, type, isRequired, note, isExtension }) => (
          <tr key={name} className="align-top">
            <th scope="row" className="w-2/5 py-2 pr-4 font-normal">
              <code className="font-mono text-[0.8125rem] font-medium break-all">{name}</code>
              <span className="block text-xs text-faint">
                {isRequired ? 'required' : 'optional'}
                {isExtension && ', extension'}
              </span>
            </th>
            <td className="py-2">
              <code className="font-mono text-xs break-words text-soft">{type}</code>
              {note && (
                <p className="text-[0.8125rem] text-soft">
                  <Inline text={note} />
                </p>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
