'use client'

import { useRouter } from 'next/navigation'
import { useEffect, useState, useTransition } from 'react'

const EVERY_MS = 2_000
/** An answer that takes longer does not come: what is on the page is old. */
const PATIENCE_MS = 10_000
const WORDS = { off: 'Reload for newer figures', live: 'Live', paused: 'Paused', lost: 'No connection' } as const

/**
 * Keeps the page fresh: the next look two seconds after the last one's answer has arrived, and none while the tab is
 * hidden. A service that does not answer is waited for; asking it for a page would leave this one.
 */
export function Live() {
  const router = useRouter()
  const [state, setState] = useState<keyof typeof WORDS>('off')
  const [isPending, startTransition] = useTransition()

  useEffect(() => {
    if (isPending) return
    // The page has just arrived, the first or a fresher one.
    let due = performance.now() + EVERY_MS
    let timer: number | undefined
    let isLooking = false
    const ending = new AbortController()

    const look = async () => {
      isLooking = true
      const signal = AbortSignal.any([ending.signal, AbortSignal.timeout(PATIENCE_MS)])
      const answer = await fetch('/api/health', { cache: 'no-store', signal }).catch(() => undefined)
      isLooking = false
      due = performance.now() + EVERY_MS
      // Much may have happened meanwhile: nobody looks any more, or the page is gone.
      if (ending.signal.aborted) return
      if (!document.hidden) setState(answer?.ok ? 'live' : 'lost')
      if (!document.hidden && answer?.ok) startTransition(() => router.refresh())
      plan()
    }
    const plan = () => {
      window.clearTimeout(timer)
      if (document.hidden) setState('paused')
      else if (!isLooking) timer = window.setTimeout(look, Math.max(0, due - performance.now()))
    }

    setState((before) => (before === 'off' ? 'live' : before))
    plan()
    document.addEventListener('visibilitychange', plan)
    return () => {
      ending.abort()
      window.clearTimeout(timer)
      document.removeEventListener('visibilitychange', plan)
    }
  }, [router, isPending])

  return (
    <span className="inline-flex items-center gap-1.5 text-xs whitespace-nowrap text-faint">
      <span
        aria-hidden="true"
        className={`size-1.5 rounded-full ${state === 'live' ? 'bg-good-fill' : state === 'lost' ? 'bg-bad-fill' : 'border border-faint'}`}
      />
      {WORDS[state]}
    </span>
  )
}
