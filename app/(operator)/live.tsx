'use client'

import { useRouter } from 'next/navigation'
import { useEffect, useState, useTransition } from 'react'

const EVERY_MS = 2_000
const WORDS = { off: 'Reload for newer figures', live: 'Live', paused: 'Paused', lost: 'No connection' } as const

/**
 * Keeps the page fresh: one look every two seconds at most, none while the tab is hidden, and the next only when the
 * last has arrived. A service that does not answer is waited for; asking it for a page would leave this one.
 */
export function Live() {
  const router = useRouter()
  const [state, setState] = useState<keyof typeof WORDS>('off')
  const [isPending, startTransition] = useTransition()

  useEffect(() => {
    if (isPending) return
    const look = async () => {
      if (document.hidden) return setState('paused')
      const answer = await fetch('/api/health', { cache: 'no-store' }).catch(() => undefined)
      if (!answer?.ok) return setState('lost')
      setState('live')
      startTransition(() => router.refresh())
    }
    const timer = setInterval(look, EVERY_MS)
    const show = () => (document.hidden ? setState('paused') : void look())
    document.addEventListener('visibilitychange', show)
    setState((before) => (before === 'off' ? 'live' : before))
    return () => {
      clearInterval(timer)
      document.removeEventListener('visibilitychange', show)
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
