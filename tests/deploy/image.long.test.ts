import { execFileSync } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseEnv } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { MEMORY } from '#lib/cli/process/serve.ts'
import { VARIABLE_NAMES } from '#lib/config/environment.ts'

const read = (file: string) => readFileSync(file, 'utf8')
const lines = (file: string) =>
  read(file)
    .split('\n')
    .filter((line) => line && !line.startsWith('#'))

/** The files that the builder receives. */
const [first, ...allowed] = lines('.dockerignore')
const isAllowed = (path = '') => allowed.some((line) => `${path}/`.startsWith(`${line.slice(1)}/`))

/** The instructions of each stage of the Dockerfile, by name. */
const stages = new Map(
  read('Dockerfile')
    .split(/^(?=FROM )/m)
    .flatMap((text) => {
      const name = /^FROM \S+ AS (\S+)/.exec(text)?.[1]
      return name ? [[name, text] as const] : []
    }),
)

describe('the images', () => {
  test('include only the listed files, which all exist', () => {
    expect(first).toBe('*')
    expect(allowed.every((line) => /^![\w./-]+$/.test(line) && existsSync(line.slice(1)))).toBe(true)
    expect(allowed.filter((line) => /\.env|\.data|\.git|node_modules|\.next/.test(line))).toEqual([])
  })

  test('copy only files that the builder receives', () => {
    const copied = [...read('Dockerfile').matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, from]) =>
      from?.split(' '),
    )
    expect(copied.length).toBeGreaterThan(4)
    expect(copied.filter((from) => from !== '.' && !isAllowed(from))).toEqual([])
  })

  test.each([
    ['web', 'server.js'],
    ['relay', 'lib/cli/relay.ts'],
  ])('define %s, which runs %s without root and has a health check', (name, program) => {
    const stage = stages.get(name) ?? ''
    expect(stage).toMatch(new RegExp(`^USER node\\n[^]*^CMD \\["node", "${program}"\\]$`, 'm'))
    expect(stage).toMatch(/^HEALTHCHECK /m)
  })

  test.each(['web', 'relay'])('name the version and the commit in the labels of %s', (name) => {
    const { version } = JSON.parse(read('package.json')) as { version: string }
    const stage = stages.get(name) ?? ''
    expect(stage).toContain(`ARG VERSION=${version}\nARG COMMIT=\nENV COMMIT=\${COMMIT}\n`)
    expect(stage).toMatch(/image\.version="\$\{VERSION\}"[\s\S]*image\.revision="\$\{COMMIT\}"/)
    // The application's build contains its commit.
    expect(stages.get('build')).toMatch(/^ARG COMMIT=\nRUN .*npm run build/m)
  })

  test('set the same memory options as npm start', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: { start: string } }
    for (const setting of Object.entries(MEMORY).map((pair) => pair.join('='))) {
      expect(stages.get('web')).toMatch(new RegExp(`^ENV .*${setting}`, 'm'))
      expect(scripts.start).toContain(` ${setting} `)
    }
  })

  test('use the Node version of package.json, and default to the service', () => {
    const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } }
    expect(stages.get('base')).toContain(`FROM node:${engines.node.replace('>=', '')}-slim`)
    expect([...stages.keys()].at(-1)).toBe('web')
  })
})

test('copies only the migrations, the guides and the package into a standalone build', () => {
  // A standalone build copies the files in these traces. Every build writes a trace for each entry.
  const traces = globSync('.next/server/**/*.nft.json')
  expect(traces).toContain('.next/server/instrumentation.js.nft.json')
  const traced = traces.flatMap((trace) => {
    const { files } = JSON.parse(read(trace)) as { files: string[] }
    return files.map((file) => join(dirname(trace), file))
  })
  const own = new Set(traced.filter((file) => !/^(node_modules|\.next)\//.test(file)))
  expect(own).toContain('drizzle/migrations/meta/_journal.json')
  expect(own).toContain('docs/walkthrough.md')
  expect(
    [...own].filter(
      (file) => !/^(drizzle\/migrations\/|docs\/[\w-]+\.md$|lib\/sdk\/dist\/[\w.-]+\.tgz$|package\.json$)/.test(file),
    ),
  ).toEqual([])
  expect([...own].filter((file) => !isAllowed(file))).toEqual([])
  // Only relays and clients prove, and only the embedded ledger verifies, so functions on Vercel must not include these
  // 30 MB.
  expect(traced.filter((file) => /node_modules\/@(aztec|noir-lang)\//.test(file))).toEqual([])
})

test('includes the prover’s packages and their dependencies in the service’s image', () => {
  const { packages } = JSON.parse(read('package-lock.json')) as {
    packages: Record<string, { dependencies?: Record<string, string> }>
  }
  const needed = new Set(['@aztec/bb.js', '@noir-lang/noir_js'])
  for (const name of needed) {
    for (const dependency of Object.keys(packages[`node_modules/${name}`]?.dependencies ?? {})) {
      // A nested version is inside the copied folder.
      if (!packages[`node_modules/${name}/node_modules/${dependency}`]) needed.add(dependency)
    }
  }
  expect(needed.size).toBeGreaterThan(8)
  const copied = Array.from(needed, (name) => name.split('/')[0])
  for (const folder of copied) {
    const line = `COPY --from=dependencies /app/node_modules/${folder} ./node_modules/${folder}\n`
    expect(stages.get('web')).toContain(line)
  }
})

/** The text of each service in compose.yaml, by name. */
const services = new Map(
  read('compose.yaml')
    .split(/^(?= {2}\w+:$)/m)
    .flatMap((text) => {
      const name = /^ {2}(\w+):$/m.exec(text)?.[1]
      return name ? [[name, text] as const] : []
    }),
)

/** The variables that compose.yaml sets for a service in addition to .env. */
function setFor(name: string): Map<string, string> {
  const lines = (services.get(name) ?? '').matchAll(/^ {6}([A-Z][A-Z0-9_]+): (.*)$/gm)
  return new Map(Array.from(lines, ([, variable = '', value = '']) => [variable, value]))
}

describe('compose.yaml', () => {
  const secrets = VARIABLE_NAMES.filter((name) => /_SEEDS?$|SECRET|_TOKEN$|PASSWORD|PRIVATE_KEY|SMTP/.test(name))
  const secretsOf = (name: string) => secrets.filter((secret) => setFor(name).get(secret) !== '""')

  test('gives a relay the keys it needs', () => {
    expect(secretsOf('relay').toSorted()).toEqual(
      ['CHANNEL_SEEDS', 'CONFIDENTIAL_TOKEN', 'RELAY_PRIVATE_KEY', 'SPONSOR_SEED'].toSorted(),
    )
    // An incomplete mail configuration is rejected.
    expect(setFor('relay').get('MAIL_FROM')).toBe('""')
  })

  test('gives the service none of the relays’ keys', () => {
    expect(secrets.filter((secret) => !secretsOf('web').includes(secret)).toSorted()).toEqual([
      'CHANNEL_SEEDS',
      'RELAY_PRIVATE_KEY',
    ])
  })

  test.each(['web', 'relay'])('requires a ledger and a database outside the container of %s', (name) => {
    expect(setFor(name).get('STELLAR_RPC_URL')).toMatch(/^\$\{STELLAR_RPC_URL:\?[\w.,: ]+\}$/)
    expect(setFor(name).get('DATABASE_URL')).toMatch(/^postgres:\/\//)
  })

  test('derives PUBLIC_URL from the port of the service', () => {
    expect(services.get('web')).toMatch(/"127\.0\.0\.1:\$\{WEB_PORT:-3000\}:3000"/)
    expect(setFor('web').get('PUBLIC_URL')).toMatch(/^\$\{PUBLIC_URL:-http:\/\/localhost:\$\{WEB_PORT:-3000\}\}$/)
  })

  test('sets only variables that the service reads', () => {
    const names = [...services.keys()].flatMap((name) => [...setFor(name).keys()])
    const allowed = new Set<string>([...VARIABLE_NAMES, 'POSTGRES_USER', 'POSTGRES_DB', 'POSTGRES_PASSWORD'])
    expect(names.length).toBeGreaterThan(12)
    expect(names.filter((name) => !allowed.has(name))).toEqual([])
  })
})

describe('the password for PostgreSQL in docs/deploy.md', () => {
  const [, lines = ''] = /```sh\n(chmod 600 \.env\n.*\n)docker compose/.exec(read('docs/deploy.md')) ?? []
  let directory: string
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'payroll-compose-'))
  })
  afterEach(() => rmSync(directory, { recursive: true }))

  const follow = () => execFileSync('bash', ['-euc', lines], { cwd: directory, stdio: 'pipe' })

  test('is generated once, keeps existing lines, and is readable only by its owner', () => {
    const file = join(directory, '.env')
    writeFileSync(file, 'SPONSOR_SEED=\nPOSTGRES_PASSWORD=\nSTELLAR_NETWORK=testnet', { mode: 0o644 })
    follow()
    const content = readFileSync(file, 'utf8')
    expect(parseEnv(content)).toEqual({
      SPONSOR_SEED: '',
      STELLAR_NETWORK: 'testnet',
      POSTGRES_PASSWORD: expect.stringMatching(/^[0-9a-f]{48}$/),
    })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    follow()
    expect(readFileSync(file, 'utf8')).toBe(content)
  })

  test('does not replace the file that `npm run setup` writes', () => {
    expect(follow).toThrow(/No such file/)
  })
})

test('keeps secrets out of Dockerfile and compose.yaml', () => {
  const secret = /\b(\w*(?:SEEDS?|SECRET|PASSWORD|PRIVATE_KEY)) *[:=] *(.*)$/gm
  const set = ['Dockerfile', 'compose.yaml'].flatMap((file) => [...read(file).matchAll(secret)])
  expect(set.length).toBeGreaterThan(4)
  expect(set.filter(([, , value]) => value !== '""' && !/^\$\{\w+(:\?[^}]*)?\}$/.test(value ?? ''))).toEqual([])
})
