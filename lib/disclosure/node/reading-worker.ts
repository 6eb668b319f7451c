import { parentPort, workerData } from 'node:worker_threads'
import { readAudit } from '../audit.ts'
import { readCheckedStatement } from '../statement.ts'
import type { ReadingTask } from './reading.ts'

/** Progress is reported this often, in events. */
const STEP = 100

const task = workerData as ReadingTask
const report = (done: number, total: number) => {
  if (done % STEP === 0 || done === total) parentPort?.postMessage({ done, total })
}
const result =
  task.kind === 'statement' ? readCheckedStatement(task.input, report) : readAudit(task.events, task.secrets, report)
parentPort?.postMessage({ result })
