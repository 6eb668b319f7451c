import { ConfigurationError } from '#lib/config/environment.ts'
import { ledgerUnreachable } from '#lib/stellar/ledger-error.ts'
import type { TokenOnNetwork } from './deployment.ts'
import type { Prover, Statement } from './prover.ts'
import { CIRCUIT_TYPES } from './statement.ts'
import { simulateRead } from './transaction.ts'
import { WalletError } from './wallet-error.ts'

/**
 * The first circuit whose proofs the network would not take, because its verifier (a contract, C…) holds another key or
 * none; undefined if all are the same, or if the prover does not know its keys.
 */
export async function findForeignCircuit(
  network: TokenOnNetwork,
  verifier: string,
  prover: Prover,
): Promise<Statement['circuit'] | undefined> {
  for (const circuit of ['register', 'transfer', 'withdraw'] as const) {
    const key = prover.verificationKeys?.[circuit]
    if (key && Buffer.compare(await readVerificationKey(network, verifier, CIRCUIT_TYPES[circuit]), key) !== 0) {
      return circuit
    }
  }
  return undefined
}

/** @throws ConfigurationError that names a circuit whose proofs the network's verifier (a contract, C…) would not take */
export async function requireSameKeys(network: TokenOnNetwork, verifier: string, prover: Prover): Promise<void> {
  const foreign = await findForeignCircuit(network, verifier, prover)
  if (foreign === undefined) return
  const reason = `the network's verifier has another key, or none, for the circuit ${foreign}`
  throw new ConfigurationError('PROVER_CIRCUITS', reason)
}

/** The contract error of a verifier that has no key for a circuit's number. */
const NO_KEY = 3401

/** A verification key of the network's verifier; empty if it has none. */
async function readVerificationKey(network: TokenOnNetwork, verifier: string, circuit: number): Promise<Uint8Array> {
  try {
    const simulation = await simulateRead(network, verifier, 'get_verification_key', circuit)
    const answer = simulation.result?.retval
    // An answer of another type tells nothing about the key, so it counts as no answer.
    if (answer?.type !== 'scvBytes') throw ledgerUnreachable()
    return answer.bytes.toBytes()
  } catch (error) {
    if (error instanceof WalletError && error.contractError === NO_KEY) return new Uint8Array()
    throw error
  }
}
