import type { Worker } from 'node:worker_threads'
import type { Barretenberg } from '@aztec/bb.js'
import { ProverFault } from './circuits.ts'
import type { ReferenceString } from './reference-string.ts'

interface BackendOptions {
  referenceString: () => Promise<ReferenceString>
  threads: number
  /** Milliseconds after which a task counts as hung. */
  limitMs: number
  /** The most memory, in pages of 64 KiB; all that WebAssembly allows unless given. */
  pages?: number
}

/** The one instance of bb.js that its owner shares: a worker with 200 MB, loaded for the first task. */
interface Backend {
  /**
   * Runs one task after the other. A task that fails or hangs takes the instance with it, since its memory may be
   * damaged; the next task loads another.
   */
  run<T>(task: (api: Barretenberg) => Promise<T>): Promise<T>
  /** Ends the worker, which otherwise keeps the process alive. What runs or waits rejects, and so does any later task. */
  destroy(): Promise<void>
}

export function openBackend(options: BackendOptions): Backend {
  let loaded: Instance | undefined
  let last: Promise<unknown> = Promise.resolve()
  let isDestroyed = false

  async function runNow<T>(task: (api: Barretenberg) => Promise<T>): Promise<T> {
    if (isDestroyed) throw new ProverFault(ENDED)
    loaded ??= load(options)
    const instance = loaded
    try {
      return await withLimit(runOn(instance, task), options.limitMs)
    } catch (error) {
      if (loaded === instance) loaded = undefined
      void instance.end()
      if (error instanceof ProverFault) throw error
      const reason = error instanceof Error ? error.message : String(error)
      throw new ProverFault(`the prover failed: ${reason}`, { cause: error })
    }
  }

  return {
    run: (task) => {
      const result = last.then(() => runNow(task))
      last = result.then(ignore, ignore)
      return result
    },
    destroy: async () => {
      isDestroyed = true
      await loaded?.end()
    },
  }
}

const ENDED = 'the prover was ended'
const ignore = () => undefined

interface Instance {
  api: Promise<Barretenberg>
  /** Aborted, with a fault for its reason, when the worker ends. */
  ended: AbortSignal
  end(): Promise<void>
}

/**
 * Runs a task that rejects when the worker ends. The listener goes with the task: a race against a promise that lives as
 * long as the worker would keep the result of every task in memory.
 */
async function runOn<T>({ api, ended }: Instance, task: (api: Barretenberg) => Promise<T>): Promise<T> {
  const end = Promise.withResolvers<never>()
  const reject = () => end.reject(ended.reason)
  ended.addEventListener('abort', reject)
  try {
    ended.throwIfAborted()
    return await Promise.race([api.then(task), end.promise])
  } finally {
    ended.removeEventListener('abort', reject)
  }
}

function load(options: BackendOptions): Instance {
  const ending = new AbortController()
  const fail = (reason: string) => ending.abort(new ProverFault(reason))
  let worker: Worker | undefined
  const api = start(options, ending.signal, (born) => {
    worker = born
    // An error event without a listener would end the process.
    born.on('error', (error) => fail(`the prover failed: ${error.message}`))
    born.once('exit', () => fail('the prover ended in the middle'))
  })
  // The task that waits for it sees the rejection; once that task has ended, no other one would.
  api.catch(ignore)
  return {
    api,
    ended: ending.signal,
    // bb.js would first ask the worker, and a worker that hangs, or is still being loaded, does not answer.
    end: async () => {
      fail(ENDED)
      await worker?.terminate()
    },
  }
}

async function start(
  options: BackendOptions,
  ended: AbortSignal,
  tell: (worker: Worker) => void,
): Promise<Barretenberg> {
  const { threads, pages } = options
  const { g1, g2 } = await options.referenceString()
  const { Barretenberg, RawBuffer } = await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ '@aztec/bb.js')
  ended.throwIfAborted()
  // bb.js gives its worker out when that is loaded. A worker that dies or hangs never is, so Node's own event is used.
  process.once('worker', tell)
  const api = await Barretenberg.new({ threads, ...(pages !== undefined && { memory: { maximum: pages } }) })
  await api.srsInitSrs(new RawBuffer(g1), g1.length / 64, new RawBuffer(g2))
  return api
}

function withLimit<T>(task: Promise<T>, limitMs: number): Promise<T> {
  const limit = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => limit.reject(new ProverFault(`the prover took longer than ${limitMs / 1000} s`)),
    limitMs,
  )
  return Promise.race([task, limit.promise]).finally(() => clearTimeout(timer))
}
