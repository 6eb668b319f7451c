'use client'

import { useSyncExternalStore } from 'react'

const KEY = 'docs-session'
const listeners = new Set<() => void>()

/** The bearer token of this tab; empty without one. It ends with the tab. */
export function useSession(): string {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => sessionStorage.getItem(KEY) ?? '',
    () => '',
  )
}

export function keepSession(token: string): void {
  if (token === '') sessionStorage.removeItem(KEY)
  else sessionStorage.setItem(KEY, token)
  for (const listener of listeners) listener()
}

/** The claims of a session, for display only: the service verifies it with every request. */
export function claimsOf(token: string): { sub: string; kind: string; expiresAt: Date } | undefined {
  try {
    const [, payload = ''] = token.split('.')
    const bytes = Uint8Array.from(atob(payload.replaceAll('-', '+').replaceAll('_', '/')), (byte) => byte.charCodeAt(0))
    const { sub, kind, exp } = JSON.parse(new TextDecoder().decode(bytes))
    return { sub: String(sub), kind: String(kind), expiresAt: new Date(Number(exp) * 1000) }
  } catch {
    return undefined
  }
}
