import type { ReferenceAnswer } from '#lib/openapi/reference.ts'
import { Fields } from './fields.tsx'
import { Inline } from './prose.tsx'

/** Everything that an operation may answer, each unfolding to its fields or its messages. */
export function Answers({ answers }: { answers: readonly ReferenceAnswer[] }) {
  return (
    <div>
      <h4 className="pb-1.5 font-semibold">Answers</h4>
      <ul className="divide-y divide-line border-y border-line">
        {answers.map((answer) => (
          <li key={answer.status}>
            <Answer answer={answer} />
          </li>
        ))}
      </ul>
    </div>
  )
}

function Answer({ answer: { status, description, headers, fields, messages, type } }: { answer: ReferenceAnswer }) {
  const tone = status < 300 ? 'text-good' : status < 500 ? 'text-busy' : 'text-bad'
  return (
    <details className="group">
      <summary className="flex list-none items-baseline gap-3 py-2 -outline-offset-2">
        <span className={`font-mono text-[0.8125rem] font-semibold ${tone}`}>{status}</span>
        <span className="min-w-0 flex-1 text-soft">
          <Inline text={description} />
        </span>
        <span aria-hidden="true" className="text-faint transition-transform group-open:rotate-90">
          ›
        </span>
      </summary>
      <div className="space-y-3 pb-3 pl-[2.35rem]">
        {headers.length > 0 && (
          <p className="text-[0.8125rem] text-soft">
            Header <Inline text={`\`${headers.join('`, `')}\``} />
          </p>
        )}
        {!type.startsWith('application/json') && <p className="text-[0.8125rem] text-soft">{type}</p>}
        <Fields title="Fields" fields={fields} />
        {messages.length > 0 && (
          <ul aria-label={`Messages of ${status}`} className="space-y-1">
            {messages.map((message) => (
              <li key={message} className="font-mono text-xs break-words text-soft">
                {message}
              </li>
            ))}
          </ul>
        )}
      </div>
    </details>
  )
}
