'use client'

import { useEffect, useState } from 'react'

const SHOWN_MS = 2_000

/** One listener for every copy button of the page, and for taps on shortened hashes, which then expand. */
export function CopyListener() {
  const [announcement, announce] = useState('')

  useEffect(() => {
    document.documentElement.dataset.copies = ''
    let timer: number | undefined
    const copy = async (button: HTMLElement) => {
      const copied = await navigator.clipboard.writeText(button.dataset.copy ?? '').then(
        () => true,
        () => false,
      )
      button.toggleAttribute('data-copied', copied)
      announce(copied ? 'Copied' : 'The browser does not allow copying')
      window.clearTimeout(timer)
      timer = window.setTimeout(() => {
        button.removeAttribute('data-copied')
        announce('')
      }, SHOWN_MS)
    }
    const answer = ({ target }: MouseEvent) => {
      if (!(target instanceof Element)) return
      const button = target.closest<HTMLElement>('[data-copy]')
      if (button) void copy(button)
      else if (!target.closest('a')) target.closest('.hash')?.toggleAttribute('data-whole', true)
    }
    document.addEventListener('click', answer)
    return () => {
      window.clearTimeout(timer)
      document.removeEventListener('click', answer)
    }
  }, [])

  return (
    <p role="status" className="copied">
      {announcement}
    </p>
  )
}
