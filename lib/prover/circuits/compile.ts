import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { compile, createFileManager } from '@noir-lang/noir_wasm'
import { openBackend } from '../backend.ts'
import { CIRCUIT_NAMES, type CircuitName } from '../circuits.ts'
import { DISCLOSURE_CIRCUITS, type DisclosureCircuitName } from '../disclosure-circuits.ts'
import { encodeKeySet, KEY_SETS, type KeySetName } from '../key-set.ts'
import { readReferenceString } from '../node/reference-string.ts'
import { watchWorker } from '../node/worker.ts'
import { disclosureSource } from './disclosure-source.ts'

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
  const backend = openCompiler(STRING)
  try {
    const compiled: [CircuitName, Compiled][] = []
    for (const name of CIRCUIT_NAMES) {
      const artifact = artifactOf(await compileSource(sources, name))
      const key = await backend.run((api) => api.acirWriteVkUltraKeccakHonk(acirOf(artifact)))
      compiled.push([name, { artifact, key }])
    }
    return Object.fromEntries(compiled) as Record<CircuitName, Compiled>
  } finally {
    await backend.destroy()
  }
}

/** The artifact of each disclosure circuit. */
export async function compileDisclosures(): Promise<Map<DisclosureCircuitName, string>> {
  const artifacts = new Map<DisclosureCircuitName, string>()
  for (const circuit of DISCLOSURE_CIRCUITS) {
    const program = await compileSource(`${HERE}/source`, circuit.name, disclosureSource(circuit))
    artifacts.set(circuit.name, artifactOf(program))
  }
  return artifacts
}

/** The verification keys of these artifacts under the reference string in a folder, as a file. */
export async function makeKeySet(
  name: KeySetName,
  string: string,
  artifacts: ReadonlyMap<DisclosureCircuitName, string>,
): Promise<string> {
  const backend = openCompiler(string)
  try {
    const keys = new Map<DisclosureCircuitName, Uint8Array>()
    for (const [circuit, artifact] of artifacts) {
      // The key of the flavour with zero knowledge is the same, byte for byte.
      keys.set(circuit, await backend.run((api) => api.acirWriteVkUltraKeccakZKHonk(acirOf(artifact))))
    }
    return encodeKeySet(name, await readReferenceString(string), keys)
  } finally {
    await backend.destroy()
  }
}

function openCompiler(string: string) {
  return openBackend({
    referenceString: () => readReferenceString(string),
    threads: 1,
    limitMs: 120_000,
    watchWorker,
  })
}

type Program = Awaited<ReturnType<typeof compileSource>>

const artifactOf = ({ noir_version, hash, abi, bytecode }: Program): string =>
  `${JSON.stringify({ noir_version, hash, abi, bytecode })}\n`

const acirOf = (artifact: string): Uint8Array => gunzipSync(Buffer.from(JSON.parse(artifact).bytecode, 'base64'))

/** The program of one package, whose main function may be generated. @throws Error with the compiler's message */
export async function compileSource(sources: string, name: string, main?: string) {
  const quiet = () => undefined
  // The compiler writes into the folder that it is given.
  const workshop = await mkdtemp(`${tmpdir()}/circuits-`)
  try {
    await cp(sources, workshop, { recursive: true })
    if (main !== undefined) {
      await mkdir(`${workshop}/${name}/src`, { recursive: true })
      await writeFile(`${workshop}/${name}/Nargo.toml`, MANIFEST)
      await writeFile(`${workshop}/${name}/src/main.nr`, main)
    }
    const { program } = await compile(createFileManager(workshop), `${workshop}/${name}`, quiet, quiet)
    return program
  } finally {
    await rm(workshop, { recursive: true })
  }
}

const MANIFEST = `[package]
name = "disclose"
type = "bin"
authors = [""]

[dependencies]
equations = { path = "../equations" }
disclosure = { path = "../disclosure" }
`

const USAGE = `npm run circuits -- [--crs FOLDER]

Compiles the sources in lib/prover/circuits/source, and writes the circuits and their verification keys. The same sources
give the same files, byte for byte.

  --crs FOLDER  also the disclosure keys of real networks: the folder has the Ignition ceremony's reference string`

if (import.meta.main) {
  const { values } = parseArgs({ options: { help: { type: 'boolean' }, crs: { type: 'string' } } })
  if (values.help) console.log(USAGE)
  else await writeCircuits(values.crs)
}

async function writeCircuits(ignition: string | undefined): Promise<void> {
  const compiled = await compileCircuits()
  for (const name of CIRCUIT_NAMES) {
    await writeFile(`${HERE}/${name}.json`, compiled[name].artifact)
    await writeFile(`${HERE}/${name}.vk`, compiled[name].key)
  }
  const disclosures = await compileDisclosures()
  for (const [name, artifact] of disclosures) await writeFile(`${HERE}/disclosure/${name}.json`, artifact)
  for (const name of KEY_SETS) {
    const string = name === 'embedded' ? STRING : ignition
    if (string === undefined) continue
    await writeFile(`${HERE}/disclosure/${name}.keys.json`, await makeKeySet(name, string, disclosures))
  }
}
