'use client'

import { usePathname, useSearchParams } from 'next/navigation'
import { useEffect, useState } from 'react'

/** A bar at the top from the click on a link until its page has arrived: a page may take long while the database is slow. */
export function PendingBar() {
  const here = `${usePathname()}?${useSearchParams()}`
  const [from, setFrom] = useState('')

  useEffect(() => {
    const answer = (event: MouseEvent) => {
      const link = event.target instanceof Element ? event.target.closest('a') : null
      // Only next/link prevents the browser's own navigation, for which the browser shows its own progress.
      if (!link || !event.defaultPrevented) return
      if (link.pathname + link.search !== location.pathname + location.search) setFrom(here)
    }
    const stop = () => setFrom('')
    // After React's own listeners, which are on the document.
    window.addEventListener('click', answer)
    window.addEventListener('popstate', stop)
    return () => {
      window.removeEventListener('click', answer)
      window.removeEventListener('popstate', stop)
    }
  }, [here])

  if (from !== here) return null
  return (
    <div
      role="progressbar"
      aria-label="Loading the page"
      className="fixed inset-x-0 top-0 z-10 h-0.75 animate-pulse bg-accent motion-reduce:animate-none print:hidden"
    />
  )
}
