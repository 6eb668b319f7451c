'use client'

import { useSyncExternalStore } from 'react'

const never = () => () => {}

/** Whether scripts run. The server renders what works without them. */
export function useInteractive(): boolean {
  return useSyncExternalStore(
    never,
    () => true,
    () => false,
  )
}
