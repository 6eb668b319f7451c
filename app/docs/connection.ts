/** Where the forms of the page send to, and as whom: one for all of them. A token lives as long as the page. */
export interface Connection {
  /** undefined until somebody has changed it */
  baseUrl: string | undefined
  token: string
}

let current: Connection = { baseUrl: undefined, token: '' }
const listeners = new Set<() => void>()

export const readConnection = (): Connection => current

export function changeConnection(change: Partial<Connection>): void {
  current = { ...current, ...change }
  for (const listener of listeners) listener()
}

export function watchConnection(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
