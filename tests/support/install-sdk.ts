import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

/**
 * Installs the package that a service serves in a project, as docs/api.md tells frontends to: the file stays beside the
 * project's package.json.
 */
export async function installSdk(base: string, project: string): Promise<void> {
  const { stdout } = await run('npm', ['pack', '--silent', `${base}/sdk`], { cwd: project })
  await run('npm', ['install', '--no-audit', '--no-fund', `./${stdout.trim()}`], { cwd: project })
}
