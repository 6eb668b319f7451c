import { once } from 'node:events'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Worker } from 'node:worker_threads'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openBackend } from '#lib/prover/backend.ts'
import { compileSource } from '#lib/prover/circuits/compile.ts'
import { CIRCUIT_NAMES, type CircuitName, DELEGATION_CIRCUITS } from '#lib/prover/circuits.ts'
import { readCircuits, readVerificationKeys } from '#lib/prover/node/circuit-folder.ts'
import { openProver } from '#lib/prover/node/prover.ts'
import { readReferenceString } from '#lib/prover/node/reference-string.ts'
import { watchWorker } from '#lib/prover/node/worker.ts'
import { circuitInputs, type RealProver } from '#lib/prover/prover.ts'
import { generateReferenceString } from '#lib/prover/reference-string/generate.ts'
import { loadVerifier, type Verify } from '#lib/prover/verifier.ts'
import { encodeField, FIELD } from '#lib/wallet/grumpkin.ts'
import { PROOF_BYTES, type Statement } from '#lib/wallet/prover.ts'
import { publicInputs } from '#lib/wallet/statement.ts'
import { CIRCUITS, copyOf, edit, flip, STRING } from './files.ts'
import { delegatedTransfer, delegation, registration, transfer, withdrawal } from './statements.ts'

const STATEMENTS: Record<CircuitName, Statement> = {
  register: registration(1_234n),
  transfer: transfer(),
  withdraw: withdrawal(),
  set_spender: delegation(),
  spender_transfer: delegatedTransfer(),
}

let prover: RealProver
let verify: Verify
const proofs = new Map<CircuitName, Uint8Array>()
const keys = new Map<CircuitName, Uint8Array>()

beforeAll(async () => {
  prover = await openProver({ circuits: CIRCUITS, referenceString: STRING })
  verify = await loadVerifier(await readReferenceString(STRING))
  for (const name of CIRCUIT_NAMES) {
    keys.set(name, (await readVerificationKeys(CIRCUITS))[name] ?? new Uint8Array())
    proofs.set(name, await prover.prove(STATEMENTS[name]))
  }
})
afterAll(() => prover.destroy())

describe.each(CIRCUIT_NAMES)('a proof of %s', (name) => {
  const parts = () => {
    const [proof, key] = [proofs.get(name), keys.get(name)]
    if (!proof || !key) throw new Error('there is no proof')
    return { proof, key, inputs: publicInputs(STATEMENTS[name]) }
  }

  test('has 14,592 bytes and verifies', () => {
    const { proof, key, inputs } = parts()
    expect(proof.length).toBe(PROOF_BYTES)
    expect(verify(name, inputs, proof, key)).toBe(true)
  })

  test('is rejected for any other public input', () => {
    const { proof, key, inputs } = parts()
    for (let input = 0; input < inputs.length; input += 32) {
      expect(verify(name, flip(inputs, input + 31), proof, key)).toBe(false)
    }
  })

  test('is rejected if it has a changed bit, or is truncated, extended, empty or all zero', () => {
    const { proof, key, inputs } = parts()
    for (let at = 7; at < PROOF_BYTES; at += 701) expect(verify(name, inputs, flip(proof, at), key)).toBe(false)
    // The last commitment: four elements, whose upper bits some verifiers ignore.
    for (let at = PROOF_BYTES - 128; at < PROOF_BYTES; at += 5) {
      expect([at, verify(name, inputs, flip(proof, at), key)]).toEqual([at, false])
    }
    for (const other of [proof.subarray(32), Buffer.concat([proof, new Uint8Array(32)]), new Uint8Array()]) {
      expect(verify(name, inputs, other, key)).toBe(false)
    }
    expect(verify(name, inputs, new Uint8Array(PROOF_BYTES), key)).toBe(false)
    expect(verify(name, inputs, proof, key)).toBe(true)
  })

  test('is rejected with the field modulus added to any of its words', () => {
    const { proof, key, inputs } = parts()
    for (let at = 0; at < PROOF_BYTES; at += 32) {
      const word = BigInt(`0x${Buffer.from(proof.subarray(at, at + 32)).toString('hex')}`)
      const other = Buffer.concat([proof.subarray(0, at), encodeField(word + FIELD), proof.subarray(at + 32)])
      expect([at / 32, verify(name, inputs, other, key)]).toEqual([at / 32, false])
    }
  })

  test('is rejected under another key', () => {
    const { proof, key, inputs } = parts()
    for (const other of CIRCUIT_NAMES.filter((circuit) => circuit !== name)) {
      expect(verify(name, inputs, proof, keys.get(other) ?? key)).toBe(false)
    }
    expect(verify(name, inputs, proof, flip(key, 900))).toBe(false)
    expect(verify(name, inputs, proof, new Uint8Array(key.length))).toBe(false)
  })
})

test('a key that belongs to no circuit makes the verifier throw', async () => {
  const own = await loadVerifier(await readReferenceString(STRING))
  const inputs = publicInputs(STATEMENTS.register)
  const proof = proofs.get('register') ?? new Uint8Array(PROOF_BYTES)
  expect(() => own('register', inputs, proof, new Uint8Array(1_760).fill(255))).toThrow(
    expect.objectContaining({ code: 'failed', message: expect.stringContaining('the verifier failed: ') }),
  )
})

describe('a witness that breaks a constraint gives an invalid proof, even if the circuit was not solved before', () => {
  const backend = openBackend({
    referenceString: () => readReferenceString(STRING),
    threads: 1,
    limitMs: 120_000,
    watchWorker,
  })
  afterAll(backend.destroy)

  test.each(CIRCUIT_NAMES)('%s', async (name) => {
    const { Noir } = await import('@noir-lang/noir_js')
    const circuit = (await readCircuits(CIRCUITS))[name]
    if (!circuit) throw new Error(`no circuit ${name}`)
    const { program, acir, key } = circuit
    const inputs = publicInputs(STATEMENTS[name])
    const sk = STATEMENTS[name].witness?.sk ?? 0n
    const witness = gunzipSync((await new Noir(program).execute(circuitInputs(circuit, STATEMENTS[name]))).witness)
    const holds = async (given: Uint8Array) => {
      const output = await backend.run((api) => api.acirProveUltraKeccakHonk(acir, given))
      return verify(name, output.subarray(0, inputs.length), output.subarray(inputs.length), key)
    }
    expect(await holds(witness)).toBe(true)
    // Values are hexadecimal, 64 digits each. The spending secret is the first.
    const at = witness.indexOf(Buffer.from(sk.toString(16).padStart(64, '0')))
    expect(at).toBeGreaterThan(0)
    expect(await holds(flip(witness, at + 63))).toBe(false)
  })
})

test('a prover without the circuits of delegations generates the other proofs', async () => {
  const folder = await copyOf(CIRCUITS)
  for (const name of DELEGATION_CIRCUITS) {
    for (const ending of ['json', 'vk']) await rm(`${folder}/${name}.${ending}`)
  }
  const prover = await openProver({ circuits: folder, referenceString: STRING, threads: 1 })
  onTestFinished(prover.destroy)
  expect(Object.keys(prover.verificationKeys)).toEqual(['register', 'transfer', 'withdraw'])
  await expect(prover.prove(STATEMENTS.set_spender)).rejects.toThrow(`${folder} has no circuit set_spender`)
  expect(await prover.prove(STATEMENTS.register)).toHaveLength(PROOF_BYTES)
})

test('a folder laid out like the published circuits is used as it is', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'published-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  for (const name of CIRCUIT_NAMES) {
    await cp(`${CIRCUITS}/${name}.json`, `${folder}/target/circuit_${name}.json`)
    await cp(`${CIRCUITS}/${name}.vk`, `${folder}/vks/${name}.vk.bin`)
  }
  const published = await openProver({ circuits: folder, referenceString: STRING, threads: 1 })
  onTestFinished(published.destroy)
  const proof = await published.prove(STATEMENTS.register)
  expect(verify('register', publicInputs(STATEMENTS.register), proof, published.verificationKeys.register)).toBe(true)
  await rm(`${folder}/vks/withdraw.vk.bin`)
  await expect(openProver({ circuits: folder, referenceString: STRING })).rejects.toThrow(
    `${folder}/vks/withdraw.vk.bin cannot be read`,
  )
})

describe('circuits, keys and strings that do not belong together give no proof and fail the check', () => {
  const expectMismatch = async (circuits: string, referenceString: string, statement: Statement) => {
    const other = await openProver({ circuits, referenceString, threads: 1 })
    onTestFinished(other.destroy)
    const message = new RegExp(
      `the circuit ${statement.circuit} and its key .* and the reference string .* do not belong together`,
    )
    await expect(other.prove(statement)).rejects.toThrow(message)
    await expect(other.check()).rejects.toThrow(message)
  }

  test('a key with one byte changed', async () => {
    const folder = await copyOf(CIRCUITS)
    await edit(`${folder}/register.vk`, (bytes) => flip(bytes, 1_000))
    await expectMismatch(folder, STRING, STATEMENTS.register)
  })

  test('a circuit with one byte changed', async () => {
    const folder = await copyOf(CIRCUITS)
    await edit(`${folder}/register.json`, (bytes) => {
      const program = JSON.parse(bytes.toString())
      const acir = gunzipSync(Buffer.from(program.bytecode, 'base64'))
      // In the program, the tag 2 of the viewing key is a field element of 64 digits.
      const at = acir.indexOf('2'.padStart(64, '0'))
      expect(at).toBeGreaterThan(0)
      program.bytecode = gzipSync(flip(acir, at + 63)).toString('base64')
      return JSON.stringify(program)
    })
    const other = await openProver({ circuits: folder, referenceString: STRING, threads: 1 })
    onTestFinished(other.destroy)
    await expect(other.prove(STATEMENTS.register)).rejects.toThrow()
    await expect(other.check()).rejects.toThrow('the circuit register and its key')
  })

  test('the string of another ceremony', async () => {
    const folder = await copyOf(STRING)
    const { g1 } = generateReferenceString(3)
    // The same string shifted by one power: a valid reference string, but not the one that these keys belong to.
    await edit(`${folder}/bn254_g1.dat`, (bytes) =>
      Buffer.concat([g1.subarray(0, 64), bytes.subarray(128), g1.subarray(0, 64)]),
    )
    await expectMismatch(CIRCUITS, folder, STATEMENTS.register)
  })

  test('a circuit that takes its public inputs in another order', async () => {
    const [folder, sources] = [await copyOf(CIRCUITS), await mkdtemp(path.join(tmpdir(), 'sources-'))]
    onTestFinished(() => rm(sources, { recursive: true }))
    await cp(`${CIRCUITS}/source`, sources, { recursive: true })
    await edit(`${sources}/register/src/main.nr`, (bytes) =>
      bytes.toString().replace(/( +y_x: pub Field,\n)( +y_y: pub Field,\n)/, '$2$1'),
    )
    const program = await compileSource(sources, 'register')
    await writeFile(`${folder}/register.json`, JSON.stringify(program))
    const backend = openBackend({
      referenceString: () => readReferenceString(STRING),
      threads: 1,
      limitMs: 120_000,
      watchWorker,
    })
    onTestFinished(backend.destroy)
    const acir = gunzipSync(Buffer.from(program.bytecode, 'base64'))
    await writeFile(`${folder}/register.vk`, await backend.run((api) => api.acirWriteVkUltraKeccakHonk(acir)))
    const other = await openProver({ circuits: folder, referenceString: STRING, threads: 1 })
    onTestFinished(other.destroy)
    await expect(other.check()).rejects.toThrow(
      `the circuit register in ${folder} is for another version of the interface, or takes its public inputs in another order`,
    )
  })

  test('and the committed files pass', async () => {
    await expect(prover.check()).resolves.toBeUndefined()
  })
})

describe('a prover that fails', () => {
  const start = () => {
    const backend = openBackend({
      referenceString: () => readReferenceString(STRING),
      threads: 1,
      limitMs: 120_000,
      watchWorker,
    })
    onTestFinished(backend.destroy)
    return backend
  }

  test('because it hangs, is terminated at the time limit and replaced', async () => {
    const backend = openBackend({
      referenceString: () => readReferenceString(STRING),
      threads: 1,
      limitMs: 5_000,
      watchWorker,
    })
    onTestFinished(backend.destroy)
    await expect(backend.run(() => new Promise(() => undefined))).rejects.toThrow('the prover took longer than 5 s')
    await expect(backend.run((api) => api.getNumThreads())).resolves.toBe(1)
  })

  test('because its worker dies, rejects at once and is replaced', async () => {
    const backend = start()
    const dying = backend.run(async (api) => {
      await (api as unknown as { worker: { terminate(): Promise<unknown> } }).worker.terminate()
      return await api.getNumThreads()
    })
    await expect(dying).rejects.toThrow('the prover ended in the middle')
    await expect(backend.run((api) => api.getNumThreads())).resolves.toBe(1)
  })

  test('because memory runs out, rejects and is replaced', async () => {
    const acir = gunzipSync(
      Buffer.from(JSON.parse(await readFile(`${CIRCUITS}/transfer.json`, 'utf8')).bytecode, 'base64'),
    )
    const options = { referenceString: () => readReferenceString(STRING), threads: 1, limitMs: 120_000, watchWorker }
    const small = openBackend({ ...options, pages: 320 })
    onTestFinished(small.destroy)
    await expect(small.run((api) => api.acirWriteVkUltraKeccakHonk(acir))).rejects.toThrow(/^the prover /)
    await expect(small.run((api) => api.getNumThreads())).resolves.toBe(1)
  })

  test('because a task throws, rejects with that error and is replaced', async () => {
    const backend = start()
    await expect(backend.run(() => Promise.reject(new Error('unreachable')))).rejects.toThrow('unreachable')
    await expect(backend.run((api) => api.getNumThreads())).resolves.toBe(1)
  })

  test('because it is destroyed, rejects running, waiting and later tasks', async () => {
    const backend = start()
    const started = Promise.withResolvers<void>()
    const running = backend.run(() => {
      started.resolve()
      return new Promise(() => undefined)
    })
    const rejected = expect(running).rejects.toThrow('the prover was ended')
    const waiting = expect(backend.run((api) => api.getNumThreads())).rejects.toThrow('the prover was ended')
    await started.promise
    await backend.destroy()
    await rejected
    await waiting
    await expect(backend.run((api) => api.getNumThreads())).rejects.toThrow('the prover was ended')
  })

  test('because its worker throws while it loads, rejects and is replaced', async () => {
    const backend = start()
    // The host has no handler of this name.
    process.once('worker', (worker) => worker.postMessage({ path: [], argumentList: [{ type: 'HANDLER', name: '?' }] }))
    await expect(backend.run((api) => api.getNumThreads())).rejects.toThrow(/^the prover failed: .*deserialize/)
    await expect(backend.run((api) => api.getNumThreads())).resolves.toBe(1)
  })

  test('because its worker dies while it loads, rejects and is replaced', async () => {
    const backend = start()
    process.once('worker', (worker) => void worker.terminate())
    await expect(backend.run((api) => api.getNumThreads())).rejects.toThrow('the prover ended in the middle')
    await expect(backend.run((api) => api.getNumThreads())).resolves.toBe(1)
  })

  test('because its worker hangs while it loads, is terminated', async () => {
    const backend = start()
    const born = Promise.withResolvers<Worker>()
    process.once('worker', (worker) => {
      const listen = worker.on.bind(worker)
      // The backend never receives the worker's responses.
      worker.on = ((event, listener) =>
        event === 'message' ? worker : listen(event as 'exit', listener)) as typeof worker.on
      born.resolve(worker)
    })
    const rejected = expect(backend.run((api) => api.getNumThreads())).rejects.toThrow('the prover was ended')
    const exit = born.promise.then((worker) => once(worker, 'exit'))
    await born.promise
    await backend.destroy()
    await rejected
    await exit
  })
})

test('the prover releases the result of a task', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const backend = openBackend({
    referenceString: () => readReferenceString(STRING),
    threads: 1,
    limitMs: 120_000,
    watchWorker,
  })
  onTestFinished(backend.destroy)
  const results: WeakRef<object>[] = []
  for (let task = 0; task < 20; task += 1) results.push(new WeakRef(await backend.run(async () => ({ task }))))
  await expect
    .poll(() => {
      collect()
      return results.filter((result) => result.deref() !== undefined).length
    })
    .toBe(0)
})
