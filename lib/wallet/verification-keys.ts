import { equalBytes } from '@noble/curves/utils.js'
import { ledgerUnreachable } from '#lib/stellar/ledger-error.ts'
import type { TokenOnNetwork } from './deployment.ts'
import type { Prover, Statement } from './prover.ts'
import { CIRCUIT_TYPES } from './statement.ts'
import { simulateRead } from './transaction.ts'
import { WalletError } from './wallet-error.ts'

/** A circuit whose proofs the network rejects. */
interface ForeignCircuit {
  circuit: Statement['circuit']
  /** The key of the network's verifier, or undefined if it has none. */
  networkKey: Uint8Array | undefined
}

/**
 * The first of these circuits for which the network's verifier (a contract, C…) has a key different from the prover's,
 * or none. Undefined if all keys agree, or if the prover has no keys to compare.
 */
export async function findForeignCircuit(
  network: TokenOnNetwork,
  verifier: string,
  prover: Prover,
  circuits: readonly Statement['circuit'][] = ['register', 'transfer', 'withdraw'],
): Promise<ForeignCircuit | undefined> {
  for (const circuit of circuits) {
    const key = prover.verificationKeys?.[circuit]
    if (!key) continue
    const networkKey = await readVerificationKey(network, verifier, CIRCUIT_TYPES[circuit])
    if (!networkKey || !equalBytes(networkKey, key)) return { circuit, networkKey }
  }
  return undefined
}

/** The contract error of a verifier that has no key for a circuit type. */
const NO_KEY = 3401

/** The key of the network's verifier for a circuit type, or undefined if it has none. */
export async function readVerificationKey(
  network: TokenOnNetwork,
  verifier: string,
  circuit: number,
): Promise<Uint8Array | undefined> {
  try {
    const simulation = await simulateRead(network, verifier, 'get_verification_key', circuit)
    const value = simulation.result?.retval
    // A value of another type says nothing about the key, so it is treated as no response.
    if (value?.type !== 'scvBytes') throw ledgerUnreachable()
    return value.bytes.toBytes()
  } catch (error) {
    if (error instanceof WalletError && error.contractError === NO_KEY) return undefined
    throw error
  }
}
