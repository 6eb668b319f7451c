import { LedgerError } from './ledger-error.ts'

/** `Error(Contract, #3506)` out of a host's debug print; the rest of that may quote arguments. Undefined for an error of the node. */
export const hostErrorIn = (print: string): string | undefined => /Error\(\w+, #?\w+\)/.exec(print)?.[0]

/** How often a node is asked again that cannot simulate, such as for seconds after its start, and the pause (ms) in between. */
const SIMULATIONS = 3
const SIMULATION_PAUSE_MS = 500

/**
 * Simulates until the host has answered: only an error of the host says something about the transaction.
 * @throws LedgerError `unavailable` if the node cannot simulate
 */
export async function untilHostAnswers<Simulation>(
  simulate: () => Promise<Simulation>,
  errorIn: (simulation: Simulation) => string | undefined,
): Promise<Simulation> {
  for (let attempt = 1; ; attempt += 1) {
    const simulation = await simulate()
    const error = errorIn(simulation)
    if (error === undefined || hostErrorIn(error) !== undefined) return simulation
    if (attempt === SIMULATIONS) {
      // The rest may quote the transaction.
      const [said = ''] = error.split('\n')
      throw new LedgerError('unavailable', 'the RPC cannot simulate the transaction', { cause: said.slice(0, 200) })
    }
    await new Promise((resolve) => setTimeout(resolve, SIMULATION_PAUSE_MS))
  }
}
