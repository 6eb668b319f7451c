import { ProverError } from './prover-error.ts'

/**
 * The common reference string: powers of a secret number, as points. Proofs and keys are valid under one string only.
 */
export interface ReferenceString {
  /** 32,769 points of G1, 64 bytes each. */
  g1: Uint8Array
  /** One point of G2, 128 bytes. */
  g2: Uint8Array
}

/**
 * Watches for the next worker that bb.js starts, calls `fail` when it fails or exits, and returns a function that ends
 * it. bb.js exposes a worker only once it has loaded, so a worker that exits or hangs before that must be detected
 * otherwise.
 */
export type WatchWorker = (fail: (reason: string) => void) => { terminate(): Promise<void> }

interface BackendOptions {
  referenceString: () => Promise<ReferenceString>
  threads: number
  /** A task that takes longer counts as hung. */
  limitMs: number
  /** Where the runtime offers nothing better, the worker is ended through bb.js. */
  watchWorker?: WatchWorker
  /** The memory limit, in pages of 64 KiB; by default WebAssembly's maximum. */
  pages?: number
}

/** What the provers use of bb.js, whose own types need those of Node. Keys are passed as its RawBuffer. */
interface HonkApi {
  getNumThreads(): Promise<number>
  acirGetCircuitSizes(acir: Uint8Array, recursive: boolean, honkRecursion: boolean): Promise<[number, number]>
  acirProveUltraKeccakHonk(acir: Uint8Array, witness: Uint8Array): Promise<Uint8Array>
  acirVerifyUltraKeccakHonk(proof: Uint8Array, key: Uint8Array): Promise<boolean>
  acirWriteVkUltraKeccakHonk(acir: Uint8Array): Promise<Uint8Array>
  acirProveUltraKeccakZKHonk(acir: Uint8Array, witness: Uint8Array): Promise<Uint8Array>
  acirVerifyUltraKeccakZKHonk(proof: Uint8Array, key: Uint8Array): Promise<boolean>
  acirWriteVkUltraKeccakZKHonk(acir: Uint8Array): Promise<Uint8Array>
}

/** One shared instance of bb.js: a worker with 200 MB, loaded for the first task. */
export interface Backend {
  /**
   * Runs one task at a time. If a task fails or hangs, its instance is dropped, since the memory may be damaged, and
   * the next task loads another.
   */
  run<T>(task: (api: HonkApi) => Promise<T>): Promise<T>
  /** Ends the worker, which otherwise keeps the process alive. Running, waiting and later tasks reject. */
  destroy(): Promise<void>
}

export function openBackend(options: BackendOptions): Backend {
  let loaded: Instance | undefined
  let last: Promise<unknown> = Promise.resolve()
  let isDestroyed = false

  async function runNow<T>(task: (api: HonkApi) => Promise<T>): Promise<T> {
    if (isDestroyed) throw new ProverError('failed', ENDED)
    loaded ??= load(options)
    const instance = loaded
    try {
      return await withLimit(runOn(instance, task), options.limitMs)
    } catch (error) {
      if (loaded === instance) loaded = undefined
      void instance.end()
      if (error instanceof ProverError) throw error
      const reason = error instanceof Error ? error.message : String(error)
      throw new ProverError('failed', `the prover failed: ${reason}`, { cause: error })
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

/** An instance of bb.js with its reference string. */
type OpenApi = HonkApi & { destroy(): Promise<void> }

interface Instance {
  api: Promise<OpenApi>
  /** Aborted when the worker ends; the reason is the fault. */
  ended: AbortSignal
  end(): Promise<void>
}

/**
 * Runs a task that rejects when the worker ends. The listener is removed with the task: a race against a promise that
 * lives as long as the worker would keep the result of every task in memory.
 */
async function runOn<T>({ api, ended }: Instance, task: (api: HonkApi) => Promise<T>): Promise<T> {
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
  const fail = (reason: string) => ending.abort(new ProverError('failed', reason))
  const { api, terminate } = start(options, ending.signal, fail)
  // The waiting task sees the rejection. After it has ended, a rejection must not end the process.
  api.catch(ignore)
  return {
    api,
    ended: ending.signal,
    end: async () => {
      fail(ENDED)
      await terminate()
    },
  }
}

function start(options: BackendOptions, ended: AbortSignal, fail: (reason: string) => void) {
  let worker: { terminate(): Promise<void> } | undefined
  const open = async (): Promise<OpenApi> => {
    const { threads, pages, watchWorker } = options
    const { g1, g2 } = await options.referenceString()
    const bb = await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ '@aztec/bb.js')
    ended.throwIfAborted()
    worker = watchWorker?.(fail)
    const api = await bb.Barretenberg.new({ threads, ...(pages !== undefined && { memory: { maximum: pages } }) })
    worker ??= { terminate: () => api.destroy() }
    await api.srsInitSrs(new bb.RawBuffer(g1), g1.length / 64, new bb.RawBuffer(g2))
    return api
  }
  return { api: open(), terminate: async () => await worker?.terminate() }
}

function withLimit<T>(task: Promise<T>, limitMs: number): Promise<T> {
  const limit = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => limit.reject(new ProverError('failed', `the prover took longer than ${limitMs / 1000} s`)),
    limitMs,
  )
  return Promise.race([task, limit.promise]).finally(() => clearTimeout(timer))
}
