'use client'

import { useSyncExternalStore } from 'react'
import { changeConnection, noConnection, readConnection, watchConnection } from './connection-store.ts'

const INPUT = 'w-full rounded-md border border-edge bg-page px-2.5 py-1.5 font-mono text-[0.8125rem]'

/** Where the forms of the page send to, and as whom. */
export function Connection({ baseUrl }: { baseUrl: string }) {
  const connection = useSyncExternalStore<ReturnType<typeof readConnection> | undefined>(
    watchConnection,
    readConnection,
    noConnection,
  )
  if (!connection) return null
  return (
    <section
      aria-labelledby="try-title"
      className="mt-8 rounded-lg border border-line bg-surface p-4 shadow-card sm:p-5"
    >
      <h2 id="try-title" className="font-semibold">
        Try it
      </h2>
      <p className="mt-1 max-w-3xl text-soft">
        Every route has a form. A session comes from signing in; what you paste here is forgotten with the page.
      </p>
      <div className="mt-4 grid gap-4 sm:grid-cols-2">
        <label className="block">
          <span className="mb-1 block text-xs font-medium text-soft">Base address</span>
          <input
            className={INPUT}
            type="url"
            spellCheck={false}
            value={connection.baseUrl ?? baseUrl}
            onChange={(event) => changeConnection({ baseUrl: event.target.value })}
          />
        </label>
        <label className="block">
          <span className="mb-1 block text-xs font-medium text-soft">Bearer token</span>
          <input
            className={INPUT}
            type="password"
            autoComplete="off"
            spellCheck={false}
            placeholder="session"
            value={connection.token}
            onChange={(event) => changeConnection({ token: event.target.value.trim() })}
          />
        </label>
      </div>
    </section>
  )
}
