import type { Worker } from 'node:worker_threads'
import type { Barretenberg } from '@aztec/bb.js'
import { ProverFault } from './circuits.ts'
import type { ReferenceString } from './reference-string.ts'

export interface BackendOptions {
  referenceString: () => Promise<ReferenceString>
  threads: number
  /** Milliseconds after which a task counts as hung. */
  limitMs: number
  /** The most memory, in pages of 64 KiB; all that WebAssembly allows unless given. */
  pages?: number
}

/** The one instance of bb.js that its owner shares: a worker with 200 MB, loaded for the first task. */
export interface Backend {
  /**
   * Runs one task after the other. A task that fails or hangs takes the instance with it, since its memory may be
   * damaged; the next task loads another.
   */
  run<T>(task: (api: Barretenberg) => Promise<T>): Promise<T>
  /** Ends the worker, which otherwise keeps the process alive. What is running rejects. */
  destroy(): Promise<void>
}

export function openBackend(options: BackendOptions): Backend {
  let loaded: Instance | undefined
  let last: Promise<unknown> = Promise.resolve()

  async function runNow<T>(task: (api: Barretenberg) => Promise<T>): Promise<T> {
    loaded ??= load(options)
    const instance = loaded
    try {
      return await withLimit(Promise.race([instance.api.then(task), instance.death]), options.limitMs)
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
      last = result.catch(() => undefined)
      return result
    },
    destroy: async () => {
      const instance = loaded
      loaded = undefined
      await instance?.end()
    },
  }
}

interface Instance {
  api: Promise<Barretenberg>
  /** Rejects when the worker ends. */
  death: Promise<never>
  end(): Promise<void>
}

function load(options: BackendOptions): Instance {
  const died = Promise.withResolvers<never>()
  // Between two tasks no caller waits for it: a rejection without a handler would end the process.
  died.promise.catch(() => undefined)
  const api = start(options, (reason) => died.reject(new ProverFault(`the prover ${reason}`)))
  return {
    api,
    death: died.promise,
    // bb.js would first ask the worker, and a worker that hangs does not answer.
    end: async () => {
      died.reject(new ProverFault('the prover was ended'))
      await api.then((started) => workerOf(started).terminate()).catch(() => undefined)
    },
  }
}

async function start(options: BackendOptions, tellDeath: (reason: string) => void): Promise<Barretenberg> {
  const { threads, pages } = options
  const { g1, g2 } = await options.referenceString()
  const { Barretenberg, RawBuffer } = await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ '@aztec/bb.js')
  const api = await Barretenberg.new({ threads, ...(pages !== undefined && { memory: { maximum: pages } }) })
  const worker = workerOf(api)
  worker.once('error', (error) => tellDeath(`failed: ${error.message}`))
  worker.once('exit', () => tellDeath('ended in the middle'))
  try {
    await api.srsInitSrs(new RawBuffer(g1), g1.length / 64, new RawBuffer(g2))
    return api
  } catch (error) {
    await worker.terminate()
    throw error
  }
}

/** bb.js keeps its worker to itself; without it neither the end of the worker is seen nor a hung one ended. */
const workerOf = (api: Barretenberg): Worker => (api as unknown as { worker: Worker }).worker

function withLimit<T>(task: Promise<T>, limitMs: number): Promise<T> {
  const limit = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => limit.reject(new ProverFault(`the prover took longer than ${limitMs / 1000} s`)),
    limitMs,
  )
  return Promise.race([task, limit.promise]).finally(() => clearTimeout(timer))
}
