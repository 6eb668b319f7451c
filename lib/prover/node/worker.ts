import type { Worker } from 'node:worker_threads'
import type { WatchWorker } from '../backend.ts'

/** Finds the worker of bb.js by Node's own event. */
export const watchWorker: WatchWorker = (fail) => {
  let worker: Worker | undefined
  process.once('worker', (started) => {
    worker = started
    // An error event without a listener would end the process.
    started.on('error', (error) => fail(`the prover failed: ${error.message}`))
    started.once('exit', () => fail('the prover ended in the middle'))
  })
  return {
    // bb.js would first ask the worker, and a worker that hangs, or is still loading, does not answer.
    terminate: async () => {
      await worker?.terminate()
    },
  }
}
