import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { freePort } from './port.ts'
import { startProgram } from './program.ts'

const run = promisify(execFile)
const root = new URL('../..', import.meta.url).pathname

/** The documented commands, and a service of their own on the embedded defaults, with real proofs. */
export interface Journey {
  /** the blocks of the pages that are marked as tested, in their order, with the ports of the service */
  blocks: string[]
  port: number
  devnetPort: number
  /** Runs shell commands in the project's folder. The files that they write are elsewhere. Resolves to their output. */
  perform(lines: string): Promise<string>
  close(): Promise<void>
}

/** Runs the client's commands without npm, which takes longer to start than they do. */
export const WITHOUT_NPM = `npm() {
  case "$3" in
    wallet | disclosure | auditor) local name=$3; shift 4; "${process.execPath}" "lib/cli/$name.ts" "$@" ;;
    *) command npm "$@" ;;
  esac
}
`

/** @param variables in addition to ports and folder */
export async function startJourney(pages: readonly string[], variables: Record<string, string> = {}): Promise<Journey> {
  const directory = await mkdtemp(join(tmpdir(), 'payroll-journey-'))
  const [port, devnetPort] = [await freePort(), await freePort()]
  const own = {
    PORT: String(port),
    DEVNET_PORT: String(devnetPort),
    RELAY_PORT: '0',
    DEVNET_PROOFS: 'real',
    DATA_DIR: join(directory, 'data'),
    ...variables,
  }
  const program = await startProgram(`http://localhost:${port}`, own)
  const texts = await Promise.all(pages.map((page) => readFile(join(root, page), 'utf8')))
  const text = texts
    .join('\n')
    .replaceAll('localhost:3000', `localhost:${port}`)
    .replaceAll('localhost:8000', `localhost:${devnetPort}`)
    .replaceAll('=.data/', `=${directory}/data/`)
  const found = text.matchAll(/<!-- tested:[^>]*-->\n```sh\n([\s\S]*?)```/g)
  return {
    blocks: Array.from(found, ([, block = '']) => block),
    port,
    devnetPort,
    perform: async (lines) => {
      const files =
        /\b(transfer|request|requester|bundle|statement|audit|amounts|delegate|revoke|run)\.(xdr|json|html|csv)\b/g
      const script = lines.replaceAll(files, `${directory}/$&`)
      const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', script], {
        cwd: root,
        env: { ...process.env, ...own },
      })
      return stdout
    },
    close: async () => {
      await program.kill()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** Requires at least `least` lines `# →`, and that the commands above them printed them, with anything in place of `…`. */
export function expectPrinted(blocks: readonly string[], stdout: string, least: number): void {
  const printed = blocks
    .join('\n')
    .split('\n')
    .flatMap((line) => /^# → (.*)$/.exec(line)?.[1] ?? [])
  expect(printed.length).toBeGreaterThanOrEqual(least)
  const escaped = printed.map((line) => line.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '.*'))
  expect(stdout).toMatch(new RegExp(escaped.join('[^]*?')))
  expect(stdout).not.toContain('"error"')
}
