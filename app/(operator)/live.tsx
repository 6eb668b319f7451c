'use client'

import { useRouter } from 'next/navigation'
import { useEffect, useRef, useState, useTransition } from 'react'

/** How often the page polls for changes: while work is in progress, and otherwise. */
const BUSY_MS = 2_000
const IDLE_MS = 15_000
/** Ages and ledger numbers change even if no record does, so the page reloads after this time at the latest. */
const RENEW_MS = 60_000
/** After this long without a response, the service counts as unreachable and the page as stale. */
const TIMEOUT_MS = 10_000
/** After this long, a page that waits for a response is not called live. */
const LATE_MS = 3_000
const WORDS = {
  off: 'Reload for newer figures',
  live: 'Live',
  paused: 'Paused',
  waiting: 'Waiting for the service',
  unread: 'Records cannot be read',
  lost: 'No connection',
} as const

interface Pulse {
  /** of the records that a page shows; undefined while the database cannot be reached */
  version: string | undefined
  isOpen: boolean
}

/**
 * Keeps the page fresh. A small request polls for changes; the page reloads only after a change or after a minute. A
 * hidden tab sends no requests. While the service doesn't respond, the page waits: a reload would lose it.
 */
export function Live({ version, isOpen }: Pulse) {
  const router = useRouter()
  const [state, setState] = useState<keyof typeof WORDS>('off')
  const [since, setSince] = useState('')
  const [isPending, startTransition] = useTransition()
  const read = useRef(0)

  useEffect(() => {
    const startWaiting = () =>
      window.setTimeout(() => setState((before) => (before === 'live' ? 'waiting' : before)), LATE_MS)
    if (isPending) {
      const late = startWaiting()
      return () => window.clearTimeout(late)
    }
    read.current = performance.now()
    let due = performance.now() + (isOpen ? BUSY_MS : IDLE_MS)
    let timer: number | undefined
    let isAsking = false
    const ending = new AbortController()

    const ask = async () => {
      isAsking = true
      const late = startWaiting()
      const pulse = await askPulse(ending.signal)
      window.clearTimeout(late)
      isAsking = false
      due = performance.now() + (pulse && !pulse.isOpen ? IDLE_MS : BUSY_MS)
      // Much may have changed by now: the tab is hidden, or shows another page.
      if (ending.signal.aborted) return
      if (!document.hidden) {
        setState(pulse ? stateOf(pulse) : 'lost')
        if (pulse) setSince('')
        else setSince((before) => before || new Date().toISOString().slice(11, 19))
      }
      const isOld = performance.now() - read.current >= RENEW_MS
      if (pulse && !document.hidden && (isOld || pulse.version !== version)) startTransition(() => router.refresh())
      plan()
    }
    const plan = () => {
      window.clearTimeout(timer)
      if (document.hidden) setState('paused')
      else if (!isAsking) timer = window.setTimeout(ask, Math.max(0, due - performance.now()))
    }

    setState((before) => (before === 'lost' || before === 'paused' ? before : stateOf({ version })))
    plan()
    document.addEventListener('visibilitychange', plan)
    return () => {
      ending.abort()
      window.clearTimeout(timer)
      document.removeEventListener('visibilitychange', plan)
    }
  }, [router, isPending, version, isOpen])

  useEffect(() => {
    document.documentElement.toggleAttribute('data-stale', state === 'lost')
    return () => document.documentElement.removeAttribute('data-stale')
  }, [state])

  return (
    <span className="inline-flex items-center gap-1.5 text-xs whitespace-nowrap text-faint print:hidden">
      <span
        aria-hidden="true"
        data-state={state}
        className={`live-dot size-1.5 rounded-full ${state === 'live' ? 'bg-good-fill' : state === 'lost' || state === 'unread' ? 'bg-bad-fill' : 'border border-faint'}`}
      />
      {WORDS[state]}
      {/* Always on the page: a screen reader announces a change of a live region, not a new one. */}
      <span role="alert" className="fixed inset-x-4 bottom-4 z-10 mx-auto w-fit">
        {state === 'lost' && (
          <span className="block rounded-md border border-bad-fill bg-bad-wash px-4 py-2 text-sm font-medium whitespace-normal text-bad">
            No connection since {since} UTC: figures are old
          </span>
        )}
      </span>
    </span>
  )
}

const stateOf = ({ version }: Pick<Pulse, 'version'>) => (version === undefined ? 'unread' : 'live')

/** Resolves to undefined without a response. If the session has ended, the page shows that on reload. */
async function askPulse(ending: AbortSignal): Promise<Pulse | undefined> {
  try {
    const signal = AbortSignal.any([ending, AbortSignal.timeout(TIMEOUT_MS)])
    const answer = await fetch('/pulse', { cache: 'no-store', signal })
    if (answer.ok) return await answer.json()
    return { version: answer.status === 401 ? 'signed out' : undefined, isOpen: true }
  } catch {
    return undefined
  }
}
