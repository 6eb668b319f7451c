import { spawnSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'vite'
import { readVersion } from '#lib/config/version.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FOLDER = `${ROOT}lib/sdk/dist`
const PACKAGE = `${FOLDER}/package`
const CIRCUITS = `${ROOT}lib/prover/circuits`
const STRING = `${ROOT}lib/prover/reference-string`

/** The entries of the package: the name after its own, and the source in this folder. */
const ENTRIES = {
  '.': 'payroll-client',
  './wallet': 'wallet',
  './prover': 'prover',
  './disclosure': 'disclosure',
  './webhooks': 'webhooks',
} as const

const { license, dependencies } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as {
  license: string
  dependencies: Record<string, string>
}

/**
 * Packs what frontends install: ES modules, one per source file, with their types. The same commit always gives the same
 * bytes.
 * `npm run client` generates the API's types first.
 * @returns the path of the tarball
 */
async function packSdk(): Promise<string> {
  rmSync(PACKAGE, { recursive: true, force: true })
  await emitModules()
  emitTypes()
  cpSync(`${ROOT}LICENSE`, `${PACKAGE}/LICENSE`)
  cpSync(`${ROOT}lib/sdk/README.md`, `${PACKAGE}/README.md`)
  writeFileSync(`${PACKAGE}/package.json`, `${JSON.stringify(manifest(), null, 2)}\n`)
  for (const name of readdirSync(FOLDER)) if (name.endsWith('.tgz')) rmSync(`${FOLDER}/${name}`)
  const [{ filename } = { filename: '' }] = JSON.parse(
    run('npm', 'pack', PACKAGE, '--json', '--pack-destination', FOLDER),
  )
  return `${FOLDER}/${filename}`
}

async function emitModules(): Promise<void> {
  await build({
    configFile: false,
    root: ROOT,
    publicDir: false,
    logLevel: 'error',
    plugins: [assets()],
    build: {
      outDir: PACKAGE,
      target: 'es2024',
      minify: false,
      lib: { entry: Object.values(ENTRIES).map((name) => `${ROOT}lib/sdk/${name}.ts`), formats: ['es'] },
      rolldownOptions: {
        external: (specifier) => !/^[./\0]|^#lib\/|^embedded:/.test(specifier),
        output: { preserveModules: true, preserveModulesRoot: `${ROOT}lib`, entryFileNames: 'dist/[name].js' },
      },
    },
  })
  for (const file of filesOf('js')) {
    // The service's bundler must not touch these imports; a frontend's bundler must.
    rewrite(file, (code) => code.replaceAll(/\/\* (webpack|turbopack)Ignore: true \*\/ ?/g, ''))
  }
}

/** Turns the files of circuits and reference string into modules, which `assets.d.ts` declares. */
function assets(): Plugin {
  const text = (file: string) => JSON.stringify(readFileSync(`${CIRCUITS}/${file}`, 'utf8'))
  const circuits = namesOf('*.vk')
  const disclosure = namesOf('disclosure/*.json')
  const modules = new Map([
    [
      'string',
      `export const g1 = '${base64(STRING, 'bn254_g1.dat')}'\nexport const g2 = '${base64(STRING, 'bn254_g2.dat')}'`,
    ],
    ...circuits.map((name): [string, string] => [
      name,
      `export const artifact = ${text(`${name}.json`)}\nexport const key = '${base64(CIRCUITS, `${name}.vk`)}'`,
    ]),
    ...disclosure.map((name): [string, string] => [name, `export const content = ${text(`${name}.json`)}`]),
  ])
  const table = (names: string[]) =>
    `{ ${names.map((name) => `'${name}': () => import('embedded:${name}')`).join(', ')} }`
  modules.set(
    'assets',
    [
      `const circuits = ${table(circuits)}`,
      `const disclosure = ${table(disclosure)}`,
      'export const loadCircuit = (name) => circuits[name]()',
      "export const loadDisclosureFile = (name) => disclosure['disclosure/' + name]()",
      "export const loadReferenceString = () => import('embedded:string')",
    ].join('\n'),
  )
  return {
    name: 'embedded-assets',
    enforce: 'pre',
    resolveId: (specifier) => {
      if (specifier === './assets.js') return '\0embedded:assets'
      return specifier.startsWith('embedded:') ? `\0${specifier}` : undefined
    },
    load: (id) => (id.startsWith('\0embedded:') ? modules.get(id.slice('\0embedded:'.length)) : undefined),
  }
}

/** The circuit files that match a pattern, without their extension. */
const namesOf = (pattern: string): string[] =>
  globSync(pattern, { cwd: CIRCUITS })
    .map((file) => file.replace(/\.\w+$/, ''))
    .toSorted()

const base64 = (folder: string, name: string) => readFileSync(`${folder}/${name}`).toString('base64')

function emitTypes(): void {
  const tsc = fileURLToPath(new URL('bin/tsc', `${import.meta.resolve('typescript/package.json')}`))
  run(process.execPath, tsc, '-p', `${ROOT}lib/sdk/tsconfig.json`)
  for (const name of ['payroll-api.d.ts', 'assets.d.ts']) {
    cpSync(`${ROOT}lib/sdk/${name}`, `${PACKAGE}/types/sdk/${name}`)
  }
  for (const file of filesOf('ts')) {
    rewrite(file, (code) =>
      code
        // Every source file is one folder below lib.
        .replaceAll(/(['"])#lib\/([^'"]+)\1/g, '$1../$2$1')
        .replaceAll(/(['"])(\.[^'"]*?)(\.d)?\.ts\1/g, '$1$2.js$1'),
    )
  }
}

/** The package.json, with the dependencies that the modules and types import. */
function manifest() {
  const imported = new Set<string>()
  for (const file of [...filesOf('js'), ...filesOf('ts')]) {
    const code = readFileSync(file, 'utf8')
    for (const [, specifier = ''] of code.matchAll(/(?:from|import)\s*\(?\s*['"]([@a-z][\w@./-]*)['"]/g)) {
      const [first = '', second = ''] = specifier.split('/')
      imported.add(first.startsWith('@') ? `${first}/${second}` : first)
    }
  }
  const { version, commit } = readVersion()
  const gitHead = lastChange() ?? commit
  const foreign = [...imported].filter((name) => !dependencies[name] || builtinModules.includes(name))
  if (foreign.length > 0) throw new Error(`the package would import ${foreign.join(', ')}`)
  return {
    name: 'confidential-payroll-sdk',
    version,
    ...(gitHead && { gitHead }),
    description: 'Confidential payroll on Stellar for frontends: API client, wallet and prover',
    license,
    type: 'module',
    sideEffects: false,
    engines: { node: '>=22' },
    exports: Object.fromEntries(
      Object.entries(ENTRIES).map(([name, source]) => [
        name,
        { types: `./types/sdk/${source}.d.ts`, default: `./dist/sdk/${source}.js` },
      ]),
    ),
    dependencies: Object.fromEntries([...imported].toSorted().map((name) => [name, dependencies[name]])),
  }
}

/**
 * The last commit that changed the package's sources, so that its bytes and its address stay the same until they change; undefined
 * without a repository, or with uncommitted changes.
 */
function lastChange(): string | undefined {
  const sources = [
    'lib/sdk',
    'lib/wallet',
    'lib/prover',
    'lib/disclosure',
    'lib/stellar',
    'lib/text',
    'lib/api',
    'package.json',
  ]
  const git = (...args: string[]) => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' })
  const changed = git('status', '--porcelain', '--', ...sources)
  const last = git('log', '-1', '--format=%H', '--', ...sources)
  const isKnown = changed.status === 0 && changed.stdout === '' && last.status === 0
  return isKnown && last.stdout !== '' ? last.stdout.trim() : undefined
}

const filesOf = (extension: string): string[] =>
  globSync(`**/*.${extension}`, { cwd: PACKAGE })
    .toSorted()
    .map((name) => `${PACKAGE}/${name}`)

function rewrite(file: string, change: (code: string) => string): void {
  writeFileSync(file, change(readFileSync(file, 'utf8')))
}

function run(command: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}${stderr}`)
  return stdout
}

if (import.meta.main) {
  mkdirSync(FOLDER, { recursive: true })
  console.log(await packSdk())
}
