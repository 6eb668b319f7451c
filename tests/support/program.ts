import { answers, startServing } from '#lib/cli/process/serve.ts'
import { freePort } from './port.ts'
import { openTestService, type TestService } from './test-service.ts'

/** The built service as a process of its own. */
export interface Program {
  /** SIGKILL; resolves once it is gone. */
  kill(): Promise<void>
}

/** Starts `next start` with nothing but `variables` for configuration. */
export async function startProgram(base: string, variables: Record<string, string>): Promise<Program> {
  if (await answers(base)) throw new Error(`something answers at ${base} already`)
  return await startServing(base, variables)
}

/** A service whose chores are left to programs, and the origin at which a program with its variables answers. */
export async function openProgramService(
  variables: Record<string, string>,
): Promise<{ service: TestService<'embedded'>; base: string }> {
  const port = await freePort()
  const base = `http://localhost:${port}`
  const own = { PORT: String(port), PUBLIC_URL: base, ...variables }
  return { service: await openTestService({ ledger: 'embedded', choresEveryMs: 0, variables: own }), base }
}
