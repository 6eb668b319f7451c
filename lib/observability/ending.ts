import { perProcess } from './per-process.ts'

const state = perProcess('ending', () => ({ hasBegun: false }))

/** Whether this process has been told to end: long polls respond at once. */
export const isEnding = (): boolean => state.hasBegun

/** Notes the signal that ends the process. */
export function noteEnding(): void {
  process.once('SIGTERM', () => {
    state.hasBegun = true
  })
}
