import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, watch } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { DEVELOPMENT_DIRECTORY } from '#lib/config/data-directory.ts'
import { environment, isSet } from '#lib/config/environment.ts'
import { listenHostOf } from '#lib/config/listen-host.ts'
import { nextProgram, packClient } from './build.ts'
import { makeTemplate } from './database-template.ts'
import { runCommand } from './process/command.ts'
import { requireFreePort } from './process/port.ts'
import { end } from './process/serve.ts'

const USAGE = `npm run dev

Serves everything on embedded defaults, as npm start does, without a build. An edit of a page, or of code behind a
request, is live at once. After an edit of code that startup loads (the ledger, the relay, chores), the service also
restarts by itself. The state is in .data/dev, unless DATA_DIR is set.`

/** The folders of which startup runs nothing: requests see an edit without a restart. */
const RELOADED = /^(api|cli|dashboard|disclosure|refusal|sdk|setup)\//

/** How long files must be left alone before a restart: saving several of them causes one. */
const QUIET_MS = 1_000

const POLL_MS = 100

/** Starts Next's development server, in which the service starts. */
function startNext(port: number): ChildProcess {
  const host = listenHostOf(environment())
  // Next's refresh in place misses modules that startup has loaded, too: requests would still run the old ones.
  const options = ['--no-server-fast-refresh', '-p', String(port), ...(host ? ['-H', host] : [])]
  return spawn(process.execPath, [nextProgram(), 'dev', ...options], {
    stdio: 'inherit',
    env: {
      ...process.env,
      NEXT_TELEMETRY_DISABLED: '1',
      // Next's command kills its server unless that has closed the ledger and the database in this time.
      NEXT_EXIT_TIMEOUT_MS: '5000',
      ...(!isSet('DATA_DIR') && { DATA_DIR: DEVELOPMENT_DIRECTORY }),
    },
  })
}

/** Calls `onEdit` with a file that startup may load, once no such file has changed for a moment. */
function watchSources(onEdit: (file: string) => void): void {
  let quiet: NodeJS.Timeout | undefined
  for (const folder of ['lib', 'drizzle']) {
    watch(folder, { recursive: true }, (_, name) => {
      if (!name || !/\.(ts|json|sql)$/.test(name) || (folder === 'lib' && RELOADED.test(name))) return
      clearTimeout(quiet)
      quiet = setTimeout(() => onEdit(`${folder}/${name}`), QUIET_MS)
    })
  }
}

async function serve(): Promise<void> {
  const { PORT } = environment()
  await requireFreePort(PORT, listenHostOf(environment()))
  if (!existsSync('lib/sdk/dist')) packClient()
  await makeTemplate()

  let next = startNext(PORT)
  let isEnding = false
  const stop = async (signal: NodeJS.Signals) => {
    isEnding = true
    await end(next, signal)
    process.exit()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop)

  let edit = Promise.withResolvers<string>()
  watchSources((file) => edit.resolve(file))
  const first = await Promise.race([waitUntilServing(PORT, next), edit.promise])
  if (first === 'exited') process.exit(next.exitCode ?? 1)
  for (;;) {
    const file = await edit.promise
    edit = Promise.withResolvers()
    console.log(`\n${file} has changed: restarting the service …`)
    const began = performance.now()
    await end(next, 'SIGTERM')
    if (isEnding) return
    next = startNext(PORT)
    // A service that does not start, because of a syntax error perhaps, starts after the next edit.
    const state = await Promise.race([waitUntilServing(PORT, next), edit.promise])
    const seconds = ((performance.now() - began) / 1000).toFixed(1)
    if (state === 'serving') console.log(`\nThe service has restarted in ${seconds} s.`)
    if (state === 'exited') console.log('\nThe service has stopped. It starts again after the next edit.')
  }
}

/** The error in Next's response to every request while it cannot compile what startup loads. */
const ERROR_MESSAGE = /"err":\{.*?"message":("(?:[^"\\]|\\.)*")/s

/** Waits for the first response. Prints the error in it, since Next itself prints none. */
async function waitUntilServing(port: number, next: ChildProcess): Promise<'serving' | 'failed' | 'exited'> {
  while (next.exitCode === null && next.signalCode === null) {
    const response = await fetch(`http://localhost:${port}/api/health`).catch(() => undefined)
    if (response && response.status !== 500) return 'serving'
    if (response) {
      const [, message = '"The service responds with 500."'] = ERROR_MESSAGE.exec(await response.text()) ?? []
      console.error(`\n${String(JSON.parse(message)).trim()}\n\nThe service starts after the next edit.`)
      return 'failed'
    }
    await sleep(POLL_MS)
  }
  return 'exited'
}

await runCommand({ usage: USAGE, options: {}, run: serve })
