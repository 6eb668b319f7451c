'use client'

import { useEffect } from 'react'

/** The `/` key focuses the search field, unless another field has the focus. */
export function SearchKey() {
  useEffect(() => {
    const goToSearch = (event: KeyboardEvent) => {
      const { target } = event
      const isTyping = target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]')
      if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return
      const field = document.querySelector<HTMLInputElement>('input[type=search]')
      if (!field) return
      event.preventDefault()
      field.focus()
      field.select()
    }
    document.addEventListener('keydown', goToSearch)
    return () => document.removeEventListener('keydown', goToSearch)
  }, [])
  return null
}
