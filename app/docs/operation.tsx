import type { ReferenceOperation } from '#lib/openapi/reference.ts'
import { Answers } from './answers.tsx'
import { Code } from './code.tsx'
import { Fields } from './fields.tsx'
import { Method } from './method.tsx'
import { Prose } from './prose.tsx'
import { curlText } from './request-text.ts'
import { TryIt } from './try-it.tsx'

const TOKENS = { session: 'session', metrics: 'METRICS_TOKEN', scheduler: 'CRON_SECRET' } as const

/** One method of one route: what it takes, what it answers, an example of each, and a form to try it. */
export function Operation({ operation, baseUrl }: { operation: ReferenceOperation; baseUrl: string }) {
  const { id, method, path, summary, description, isExtension, token, needsEmployer, parameters, body } = operation
  const parts = {
    'Path parameters': parameters.filter(({ place }) => place === 'path'),
    'Query parameters': parameters.filter(({ place }) => place === 'query'),
    Body: body?.fields ?? [],
  }
  return (
    <article
      id={id}
      aria-labelledby={`${id}-title`}
      className="mt-6 scroll-mt-4 rounded-lg border border-line bg-surface shadow-card"
    >
      <header className="border-b border-line px-4 py-4 sm:px-5">
        <h3 id={`${id}-title`} className="text-base font-semibold">
          <a href={`#${id}`} className="underline-offset-4 hover:underline">
            {summary}
          </a>
        </h3>
        <p className="mt-2 flex flex-wrap items-center gap-x-2.5 gap-y-1.5">
          <Method name={method} />
          <code className="min-w-0 font-mono font-medium break-all">{path}</code>
        </p>
        <ul className="mt-2.5 flex flex-wrap gap-x-4 gap-y-1 text-[0.8125rem] text-faint">
          <li>{token ? `Bearer ${TOKENS[token]}` : 'No authentication'}</li>
          {needsEmployer && <li>Employer role</li>}
          {isExtension && <li>Extension: not in the specification</li>}
        </ul>
      </header>
      <div className="grid gap-x-8 gap-y-6 px-4 py-5 sm:px-5 xl:grid-cols-2">
        <div className="min-w-0 space-y-6">
          {description && <Prose className="text-soft" text={description} />}
          {Object.entries(parts).map(([title, fields]) => (
            <Fields key={title} title={title} fields={fields} />
          ))}
          <Answers answers={operation.answers} />
        </div>
        <div className="min-w-0 space-y-4">
          <Code title="Request" text={curlText(operation, baseUrl)} />
          {operation.answers
            .filter(({ status, example }) => status === 200 && example !== undefined)
            .map(({ status, example }) => (
              <Code key={status} title={`Answer ${status}`} text={exampleText(example)} />
            ))}
          <TryIt
            baseUrl={baseUrl}
            method={method}
            path={path}
            needsToken={token !== undefined}
            parameters={parameters.map(({ name, place, example = '', isRequired }) => {
              return { name, place, example: isRequired ? example : '', isRequired }
            })}
            body={body && exampleText(body.example)}
          />
        </div>
      </div>
    </article>
  )
}

const exampleText = (example: unknown) => (typeof example === 'string' ? example : JSON.stringify(example, null, 2))
