import type { Metadata, Route } from 'next'
import Link from 'next/link'
import { DESCRIPTION } from '#lib/api/openapi.ts'
import { reference } from '#lib/api/reference/reference.ts'
import { Paragraphs, Prose } from './prose.tsx'
import { startedService } from './started-service.ts'

export const metadata: Metadata = { title: 'API reference' }

/** The rules that apply to every operation, and the sections of the reference. */
export default async function ReferencePage() {
  const { settings } = await startedService()
  return (
    <>
      <h1 className="text-2xl font-semibold tracking-tight">API reference</h1>
      <Paragraphs text={DESCRIPTION} />
      <p className="mt-3 text-soft">
        Paths are relative to <code className="[overflow-wrap:anywhere]">{settings.publicUrl}/api</code>. Machines read
        the same as{' '}
        <a href="/api/openapi.json" className="underline underline-offset-4 hover:text-accent">
          OpenAPI 3.1
        </a>
        .
      </p>
      {reference().map(({ slug, name, description, operations }) => (
        <section key={slug} aria-labelledby={slug} className="mt-8">
          <h2 id={slug} className="font-semibold">
            <Link
              href={`/docs/${slug}` as Route}
              prefetch={false}
              className="underline-offset-4 hover:text-accent hover:underline"
            >
              {name}
            </Link>
          </h2>
          <p className="text-soft">
            <Prose text={description} />
          </p>
          <ul className="mt-2 divide-y divide-line rounded-lg border border-line bg-surface shadow-card">
            {operations.map(({ id, method, path, summary }) => (
              <li key={id}>
                <Link
                  href={`/docs/${slug}#${id}` as Route}
                  prefetch={false}
                  className="grid gap-x-4 px-4 py-2 hover:text-accent sm:grid-cols-2"
                >
                  <span>{summary}</span>
                  <span className="font-mono text-[0.8125rem] text-soft [overflow-wrap:anywhere]">
                    {method} {path}
                  </span>
                </Link>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </>
  )
}
