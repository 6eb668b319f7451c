import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync, statSync, watch } from 'node:fs'
import { join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { DEVELOPMENT_DIRECTORY } from '#lib/config/data-directory.ts'
import { environment, isSet } from '#lib/config/environment.ts'
import { listenHostOf } from '#lib/config/listen-host.ts'
import { nextProgram, packClient } from './build.ts'
import { makeTemplate } from './database-template.ts'
import { runCommand } from './process/command.ts'
import { print, printMessage } from './process/output.ts'
import { requireFreePort } from './process/port.ts'
import { end } from './process/serve.ts'

const USAGE = `npm run dev

Serves everything on embedded defaults, as npm start does, without a build. An edit of a page, or of code behind a
request, is live at once. After an edit of code that startup loads (the ledger, the relay, chores), the service also
restarts by itself. The state is in .data/dev, unless DATA_DIR is set.`

/** The folders of which startup keeps nothing running: requests see an edit without a restart. */
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

/** The files of the project's folder from which Next starts the service. */
const BOOT = /^(instrumentation|proxy|next\.config)\.ts$/

/** The folders with sources; `.` without those below it. */
const WATCHED = ['lib', 'drizzle', 'app', '.']

/**
 * Calls `onEdit` with a file that startup may load, once no such file has changed for a moment; with any file while the
 * service `isDown`, because its repair may be anywhere.
 */
function watchSources(onEdit: (file: string) => void, isDown: () => boolean): void {
  let quiet: NodeJS.Timeout | undefined
  for (const folder of WATCHED) {
    watchFolder(folder, { isDeep: folder !== '.' }, (name) => {
      if (!/\.(tsx?|json|sql|css)$/.test(name)) return
      // Next writes other files there itself.
      if (folder === '.' && !BOOT.test(name)) return
      const isLoaded = folder === 'lib' ? !RELOADED.test(name) : folder !== 'app'
      if (!isLoaded && !isDown()) return
      clearTimeout(quiet)
      quiet = setTimeout(() => onEdit(join(folder, name)), QUIET_MS)
    })
  }
}

/**
 * Calls `onChange` with the path of each file that changes in a folder, relative to it. On Linux, Node's own recursive watch
 * loses a file that an editor, or git, replaces by another of its name.
 */
function watchFolder(root: string, { isDeep }: { isDeep: boolean }, onChange: (name: string) => void): void {
  const watched = new Set<string>()
  const add = (folder: string) => {
    if (watched.has(folder)) return
    watched.add(folder)
    const watcher = watch(join(root, folder), (_, name) => {
      if (!name) return
      const path = join(folder, name)
      if (isDeep && statSync(join(root, path), { throwIfNoEntry: false })?.isDirectory()) add(path)
      onChange(path)
    })
    // The folder was removed. If it is created again, it is watched again.
    watcher.on('error', () => watcher.close())
    watcher.on('close', () => watched.delete(folder))
  }
  add('.')
  if (!isDeep) return
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (entry.isDirectory()) add(relative(root, join(entry.parentPath, entry.name)))
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
  let state: string = 'starting'
  watchSources(
    (file) => edit.resolve(file),
    () => state === 'failed' || state === 'exited',
  )
  state = await Promise.race([waitUntilServing(PORT, next), edit.promise])
  if (state === 'exited') process.exit(next.exitCode ?? 1)
  for (;;) {
    const exit = state === 'exited' ? [] : [exitOf(next)]
    const file = await Promise.race([edit.promise, ...exit])
    if (isEnding) return
    if (file === undefined) {
      state = 'exited'
      print(STOPPED)
      continue
    }
    edit = Promise.withResolvers()
    print(`\n${file} has changed: restarting the service …`)
    const began = performance.now()
    await end(next, 'SIGTERM')
    if (isEnding) return
    next = startNext(PORT)
    state = 'starting'
    // A service that does not start, because of a syntax error perhaps, starts after the next edit.
    state = await Promise.race([waitUntilServing(PORT, next), edit.promise])
    const seconds = ((performance.now() - began) / 1000).toFixed(1)
    if (state === 'serving') print(`\nThe service has restarted in ${seconds} s.`)
    if (state === 'exited') print(STOPPED)
  }
}

const STOPPED = '\nThe service has stopped. It starts again after the next edit.'

const exitOf = (child: ChildProcess): Promise<undefined> =>
  new Promise((resolve) => child.once('exit', () => resolve(undefined)))

/** The error in Next's response to every request while it cannot compile what startup loads. */
const ERROR_MESSAGE = /"err":\{.*?"message":("(?:[^"\\]|\\.)*")/s

/** Waits for the first response. Prints the error in it, since Next itself prints none. */
async function waitUntilServing(port: number, next: ChildProcess): Promise<'serving' | 'failed' | 'exited'> {
  const host = listenHostOf(environment()) ?? 'localhost'
  while (next.exitCode === null && next.signalCode === null) {
    const response = await fetch(`http://${host}:${port}/api/health`).catch(() => undefined)
    if (response && response.status !== 500) return 'serving'
    if (response) {
      const [, message = '"The service responds with 500."'] = ERROR_MESSAGE.exec(await response.text()) ?? []
      printMessage(`\n${String(JSON.parse(message)).trim()}\n\nThe service starts after the next edit.`)
      return 'failed'
    }
    await sleep(POLL_MS)
  }
  return 'exited'
}

await runCommand({ usage: USAGE, options: {}, run: serve })
