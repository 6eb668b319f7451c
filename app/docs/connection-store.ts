/** Where the forms of the page send to, and as whom. It lives as long as the page: a token is kept nowhere. */
export interface ConnectionState {
  baseUrl: string | undefined
  token: string
}

let state: ConnectionState = { baseUrl: undefined, token: '' }
const listeners = new Set<() => void>()

export const readConnection = (): ConnectionState => state

/** What a page has before it runs in a browser: nothing. */
export const noConnection = (): undefined => undefined

export function changeConnection(change: Partial<ConnectionState>): void {
  state = { ...state, ...change }
  for (const listener of listeners) listener()
}

export function watchConnection(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
