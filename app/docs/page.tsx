import type { Metadata } from 'next'
import { connection } from 'next/server'
import { readReference } from '#lib/openapi/reference.ts'
import { service } from '#lib/server/services.ts'
import { Contents } from './contents.tsx'
import { Operation } from './operation.tsx'
import { Prose } from './prose.tsx'

export const metadata: Metadata = {
  title: 'API reference',
  description: 'Every route of the payroll interface: fields, answers, messages, and a form to try it',
}

/** The reference of the interface, drawn from the OpenAPI document. It reads without JavaScript; trying needs it. */
export default async function DocsPage() {
  await connection()
  const { settings } = await service()
  const reference = readReference(`${settings.publicUrl}/api`)
  const { title, version, description, baseUrl, groups } = reference
  return (
    <div className="lg:grid lg:grid-cols-[17rem_minmax(0,1fr)]">
      <noscript>
        <style>{'[data-needs-script] { display: none }'}</style>
      </noscript>
      <a
        href="#content"
        className="sr-only rounded-md bg-accent px-3 py-2 text-on-accent focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-10"
      >
        Skip to the content
      </a>
      <Contents groups={groups} />
      <main id="content" tabIndex={-1} className="min-w-0 px-4 py-6 outline-none sm:px-6 lg:px-10 lg:py-10">
        <div className="max-w-[76rem]">
          <header className="max-w-3xl">
            <p className="text-faint">
              {title} <span className="tabular-nums">{version}</span>
            </p>
            <h1 className="mt-1 text-2xl font-semibold tracking-tight lg:text-3xl">API reference</h1>
            <Prose className="mt-4 text-base leading-relaxed text-soft" text={description} />
            <dl className="mt-6 grid gap-x-6 gap-y-1 sm:grid-cols-[auto_1fr]">
              <dt className="text-faint">Base address</dt>
              <dd className="font-mono break-all">{baseUrl}</dd>
              <dt className="mt-2 text-faint sm:mt-0">OpenAPI 3.1</dt>
              <dd>
                <a href="/api/openapi.json" className="text-accent underline underline-offset-4">
                  /api/openapi.json
                </a>
              </dd>
              <dt className="mt-2 text-faint sm:mt-0">Typed client</dt>
              <dd className="font-mono break-all">npm run client -- payroll-client.ts</dd>
            </dl>
          </header>
          {groups.map((group) => (
            <section key={group.name} aria-labelledby={group.anchor} className="mt-16">
              <h2 id={group.anchor} className="scroll-mt-6 text-xl font-semibold tracking-tight">
                {group.name}
              </h2>
              <p className="mt-1 max-w-3xl text-soft">{group.description}</p>
              {group.operations.map((operation) => (
                <Operation key={operation.id} operation={operation} baseUrl={baseUrl} />
              ))}
            </section>
          ))}
        </div>
      </main>
    </div>
  )
}
