import { ConfigurationError } from '#lib/config/environment.ts'
import type { TokenOnNetwork } from '#lib/wallet/deployment.ts'
import type { Prover } from '#lib/wallet/prover.ts'
import { CIRCUIT_TYPES } from '#lib/wallet/statement.ts'
import { findForeignCircuit, readVerificationKey } from '#lib/wallet/verification-keys.ts'
import { REQUIRED_CIRCUITS } from '../circuits.ts'
import { STAND_IN_KEYS } from '../stand-in.ts'
import { readVerificationKeys } from './circuit-folder.ts'
import { EMBEDDED_CIRCUITS } from './embedded.ts'

/** @throws ConfigurationError if the network's verifier (a contract, C…) would reject the prover's proofs */
export async function requireSameKeys(network: TokenOnNetwork, verifier: string, prover: Prover): Promise<void> {
  const foreign = await findForeignCircuit(network, verifier, prover)
  if (!foreign) return
  const keys = REQUIRED_CIRCUITS.map((name) => prover.verificationKeys?.[name])
  if (isStandIn(foreign.networkKey) && !keys.some(isStandIn)) {
    throw new ConfigurationError(
      'DEVNET_PROOFS',
      'the ledger accepts stand-in proofs only: set it to stand-in here, too',
    )
  }
  if (!isStandIn(foreign.networkKey) && keys.every(isStandIn)) {
    throw new ConfigurationError('DEVNET_PROOFS', 'the ledger verifies real proofs, and rejects stand-ins')
  }
  const reason = `the network's verifier has another key, or none, for the circuit ${foreign.circuit}`
  throw new ConfigurationError('PROVER_CIRCUITS', reason)
}

/** Whether the network's verifier is that of an embedded ledger, with real or with stand-in proofs. */
export async function isEmbeddedVerifier(network: TokenOnNetwork, verifier: string): Promise<boolean> {
  const key = await readVerificationKey(network, verifier, CIRCUIT_TYPES.register)
  if (!key || isStandIn(key)) return key !== undefined
  const own = await readVerificationKeys(EMBEDDED_CIRCUITS).catch(() => undefined)
  return own !== undefined && Buffer.compare(key, own.register) === 0
}

const isStandIn = (key: Uint8Array | undefined): boolean =>
  key !== undefined && Buffer.compare(key, STAND_IN_KEYS.register) === 0
