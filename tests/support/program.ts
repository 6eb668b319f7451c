import { answers, startServing } from '#lib/cli/process/serve.ts'
import { freePort } from './port.ts'
import { openTestService, type TestService } from './test-service.ts'

/** The built service as a separate process. */
export interface Program {
  pid: number
  /** SIGKILL; resolves once the process has exited. */
  kill(): Promise<void>
}

/** Runs `next start`, configured only by `variables`. */
export async function startProgram(base: string, variables: Record<string, string>): Promise<Program> {
  if (await answers(base)) throw new Error(`${base} is already in use`)
  return await startServing(base, variables)
}

/** Opens a service without chores, and the origin for a program with the same variables. */
export async function openProgramService(
  variables: Record<string, string>,
): Promise<{ service: TestService<'embedded'>; base: string }> {
  const port = await freePort()
  const base = `http://localhost:${port}`
  const own = { PORT: String(port), PUBLIC_URL: base, ...variables }
  return { service: await openTestService({ ledger: 'embedded', choresEveryMs: 0, variables: own }), base }
}
