import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { compile, createFileManager } from '@noir-lang/noir_wasm'
import { openBackend } from '../backend.ts'
import { CIRCUIT_NAMES, type CircuitName } from '../circuits.ts'
import { readReferenceString } from '../node/reference-string.ts'
import { watchWorker } from '../node/worker.ts'

const HERE = fileURLToPath(new URL('../circuits', import.meta.url))
const STRING = fileURLToPath(new URL('../reference-string', import.meta.url))

/** The two files of one circuit. They are byte for byte the same on every machine. */
interface Compiled {
  artifact: string
  key: Uint8Array
}

/**
 * Compiles the sources and generates the verification keys under the embedded ledger's reference string. Leaves out the
 * compiler's debug symbols, which name the folder that it worked in.
 */
export async function compileCircuits(sources = `${HERE}/source`): Promise<Record<CircuitName, Compiled>> {
  const backend = openBackend({
    referenceString: () => readReferenceString(STRING),
    threads: 1,
    limitMs: 120_000,
    watchWorker,
  })
  try {
    const compileOne = async (name: CircuitName): Promise<Compiled> => {
      const { noir_version, hash, abi, bytecode } = await compileSource(sources, name)
      const acir = gunzipSync(Buffer.from(bytecode, 'base64'))
      const key = await backend.run((api) => api.acirWriteVkUltraKeccakHonk(acir))
      return { artifact: `${JSON.stringify({ noir_version, hash, abi, bytecode })}\n`, key }
    }
    const compiled: [CircuitName, Compiled][] = []
    for (const name of CIRCUIT_NAMES) compiled.push([name, await compileOne(name)])
    return Object.fromEntries(compiled) as Record<CircuitName, Compiled>
  } finally {
    await backend.destroy()
  }
}

/** The program of one package. @throws Error with the compiler's message */
export async function compileSource(sources: string, name: string) {
  const quiet = () => undefined
  // The compiler writes into the folder that it is given.
  const workshop = await mkdtemp(`${tmpdir()}/circuits-`)
  try {
    await cp(sources, workshop, { recursive: true })
    const { program } = await compile(createFileManager(workshop), `${workshop}/${name}`, quiet, quiet)
    return program
  } finally {
    await rm(workshop, { recursive: true })
  }
}

const USAGE = `npm run circuits

Compiles the sources in lib/prover/circuits/source, and writes the circuits and their verification keys. The same sources
give the same files, byte for byte.`

if (import.meta.main) {
  const { values } = parseArgs({ options: { help: { type: 'boolean' } } })
  if (values.help) console.log(USAGE)
  else await writeCircuits()
}

async function writeCircuits(): Promise<void> {
  const compiled = await compileCircuits()
  for (const name of CIRCUIT_NAMES) {
    await writeFile(`${HERE}/${name}.json`, compiled[name].artifact)
    await writeFile(`${HERE}/${name}.vk`, compiled[name].key)
  }
}
