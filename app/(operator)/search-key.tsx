'use client'

import { useEffect } from 'react'

/** The `/` key focuses the search field, unless another field has the focus; Ctrl K and ⌘ K always do. */
export function SearchKey() {
  useEffect(() => {
    const goToSearch = (event: KeyboardEvent) => {
      const { target, key, altKey } = event
      const isTyping = target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]')
      const withControl = event.ctrlKey || event.metaKey
      const isMeant = withControl ? key.toLowerCase() === 'k' : key === '/' && !isTyping
      const field = document.querySelector<HTMLInputElement>('input[type=search]')
      if (!isMeant || altKey || !field) return
      event.preventDefault()
      field.focus()
      field.select()
    }
    document.addEventListener('keydown', goToSearch)
    return () => document.removeEventListener('keydown', goToSearch)
  }, [])
  return null
}
