import type { Metadata } from 'next'
import { TITLES } from '#lib/api/presentation.ts'
import { reference } from '#lib/api/reference/reference.ts'
import { FIELDS, REQUIRED_FIELDS } from '#lib/refusal/fields.ts'
import { messageOf, REFUSALS } from '#lib/refusal/refusal.ts'
import { CodeBlock } from '../code-block.tsx'
import { Prose } from '../prose.tsx'
import { startedService } from '../started-service.ts'

export const metadata: Metadata = { title: 'Error codes · API reference' }

/** Every refusal code, once, by status, with an example of its response. */
export default async function ErrorsPage() {
  await startedService()
  return (
    <>
      <h1 className="text-2xl font-semibold tracking-tight">Error codes</h1>
      <p className="mt-2 max-w-prose text-soft">
        <Prose text="Programs compare the `code`; the `error` is for people, and some messages add details. An unusable body or query field is `<field>-invalid` and a missing one, or a blank name, is `<field>-required`, both with status 400." />
      </p>
      <p className="mt-2 max-w-prose text-soft">
        The fields: <span className="[overflow-wrap:anywhere]">{FIELDS.join(', ')}.</span>
      </p>
      <p className="mt-2 max-w-prose text-soft">
        <Prose text="Fields with a `-required` code:" />{' '}
        <span className="[overflow-wrap:anywhere]">{REQUIRED_FIELDS.join(', ')}.</span>
      </p>
      {Object.entries(REFUSALS).map(([status, codes]) => (
        <section
          key={status}
          id={`status-${status}`}
          aria-labelledby={`title-${status}`}
          className="mt-6 scroll-mt-4 rounded-lg border border-line bg-surface px-4 py-4 shadow-card target:border-accent sm:px-5"
        >
          <h2 id={`title-${status}`} className="text-base font-semibold">
            {status}: {TITLES[Number(status)]}
          </h2>
          <CodeBlock label={`Example of a ${status}`} text={exampleOf(Number(status))} />
          <table className="mt-3 w-full text-[0.8125rem]">
            <caption className="sr-only">Codes with status {status}</caption>
            <thead className="sr-only">
              <tr>
                <th scope="col">Code</th>
                <th scope="col">Message</th>
              </tr>
            </thead>
            <tbody className="divide-y divide-line border-y border-line">
              {Object.entries(codes).map(([code, message]) => (
                <tr key={code} id={code} className="align-baseline target:bg-accent-wash max-sm:block max-sm:py-1">
                  <th scope="row" className="py-1 pr-4 text-left font-normal max-sm:block max-sm:py-0 sm:w-64">
                    <code>{code}</code>
                  </th>
                  <td className="py-1 text-soft max-sm:block max-sm:py-0">
                    <Prose text={message} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      ))}
    </>
  )
}

/** The body of a refusal with the code of a status that most operations have. */
function exampleOf(status: number): string {
  const operations = reference().flatMap((group) => group.operations)
  const codes = operations.flatMap(({ refusals }) => new Map(refusals).get(status) ?? [])
  const [[code = 'internal'] = []] = [...Map.groupBy(codes, (one) => one)].sort(
    ([, some], [, others]) => others.length - some.length,
  )
  return JSON.stringify({ error: messageOf(code), code }, null, 2)
}
