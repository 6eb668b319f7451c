import { answers, startServing } from '#lib/cli/serve.ts'

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
