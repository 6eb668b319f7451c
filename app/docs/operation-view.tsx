import type { Route } from 'next'
import Link from 'next/link'
import type { OperationReference } from '#lib/api/reference/reference.ts'
import { CodeBlock } from './code-block.tsx'
import { FieldTable } from './field-table.tsx'
import { Prose } from './prose.tsx'
import { TryIt } from './try-it.tsx'

const TOKENS = {
  session: 'a session',
  metrics: 'the operator’s METRICS_TOKEN',
  scheduler: 'the operator’s CRON_SECRET',
} as const

interface OperationViewProps {
  operation: OperationReference
  /** the address before the path */
  baseUrl: string
}

/** One operation: what it does, its request and response, its errors, and a form that sends it. */
export function OperationView({ operation, baseUrl }: OperationViewProps) {
  const { id, method, path, summary, description, token, role, isExtension, parameters, query, body, response } =
    operation
  const requirement = token && `Requires ${TOKENS[token]}${role ? ` with the role ${role}` : ''}.`
  return (
    <article
      id={id}
      aria-labelledby={`${id}-title`}
      className="mt-6 scroll-mt-4 rounded-lg border border-line bg-surface px-4 py-4 shadow-card target:border-accent sm:px-5"
    >
      <h2 id={`${id}-title`} className="text-base font-semibold">
        <a href={`#${id}`} className="underline-offset-4 hover:text-accent hover:underline">
          {summary}
        </a>
      </h2>
      <p className="mt-1 font-mono text-[0.8125rem] [overflow-wrap:anywhere]">
        <span className="mr-2 rounded bg-accent-wash px-1.5 py-0.5 font-medium text-accent-strong">{method}</span>
        {path}
      </p>
      {description !== '' && (
        <p className="mt-2 max-w-prose text-soft">
          <Prose text={description} />
        </p>
      )}
      <p className="mt-2 text-[0.8125rem] text-faint">
        {requirement ?? 'Requires no session.'}
        {isExtension && ' An addition to the specification.'}
      </p>
      <FieldTable of="request" title="Path" fields={parameters} />
      <FieldTable of="request" title="Query" fields={query} />
      <FieldTable of="request" title="Headers" fields={operation.headers} />
      {body && (
        <FieldTable
          of="request"
          title={body.acceptsForm ? 'Body: JSON, or a form' : 'Body: JSON'}
          fields={body.fields}
        />
      )}
      {response && (
        <>
          <h3 className="mt-4 font-medium">200</h3>
          <p className="text-soft">
            <Prose text={response.description} />
          </p>
          {response.headers.map((header) => (
            <p key={header} className="text-[0.8125rem] text-soft">
              <Prose text={header} />
            </p>
          ))}
          <CodeBlock label={`Example of a response to ${method} ${path}`} text={response.example} />
          {response.fields.length > 0 && (
            <details className="mt-2">
              <summary className="w-fit leading-6 text-soft">Fields of the response</summary>
              <FieldTable of="response" title="Response" fields={response.fields} />
            </details>
          )}
        </>
      )}
      <details className="mt-3">
        <summary className="w-fit leading-6 text-soft">Errors</summary>
        <dl className="mt-1 grid grid-cols-[3rem_minmax(0,1fr)] gap-y-1 text-[0.8125rem]">
          {operation.refusals.map(([status, codes]) => (
            <div key={status} className="contents">
              <dt>
                <Link
                  href={`/docs/errors#status-${status}` as Route}
                  prefetch={false}
                  className="inline-block min-h-6 min-w-6 underline underline-offset-4 hover:text-accent"
                >
                  {status}
                </Link>
              </dt>
              <dd className="text-soft [overflow-wrap:anywhere]">{codes.join(', ')}</dd>
            </div>
          ))}
        </dl>
      </details>
      <TryIt
        {...{ method, path, token, baseUrl }}
        parameters={parameters.map(({ name, example }) => ({ name, example }))}
        query={query.map(({ name, example }) => ({ name, example }))}
        headers={operation.headers.map(({ name, example }) => ({ name, example }))}
        body={body?.example}
      />
    </article>
  )
}
