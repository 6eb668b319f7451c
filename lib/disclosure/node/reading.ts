import { Worker } from 'node:worker_threads'
import type { Audit } from '../audit.ts'
import type { HistoryEvent } from '../history.ts'
import type { Statement, StatementInput } from '../statement.ts'

/** A statement to decrypt in another thread. */
export type ReadingTask =
  | { kind: 'statement'; input: StatementInput }
  | { kind: 'audit'; events: readonly HistoryEvent[]; secrets: readonly bigint[] }

type Progress = (done: number, total: number) => void

/** Decrypts an account's statement off the main thread: each payment takes a few milliseconds. */
export const readStatementInWorker = (input: StatementInput, onProgress: Progress): Promise<Statement> =>
  runInWorker<Statement>({ kind: 'statement', input }, onProgress)

/** Reads an audit off the main thread. */
export const readAuditInWorker = (
  events: readonly HistoryEvent[],
  secrets: readonly bigint[],
  onProgress: Progress,
): Promise<Audit> => runInWorker<Audit>({ kind: 'audit', events, secrets }, onProgress)

function runInWorker<Result>(task: ReadingTask, onProgress: Progress): Promise<Result> {
  const worker = new Worker(new URL('./reading-worker.ts', import.meta.url), { workerData: task })
  return new Promise<Result>((resolve, reject) => {
    worker.on('message', (message: { result: Result } | { done: number; total: number }) => {
      if ('result' in message) resolve(message.result)
      else onProgress(message.done, message.total)
    })
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('the worker ended without a result')))
  })
}
