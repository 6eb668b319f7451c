import { Address, type Keypair } from '@stellar/stellar-sdk'
import { ConfigurationError } from '#lib/config/environment.ts'
import { Refusal } from '#lib/http/refusal.ts'
import { ProverFault } from '#lib/prover/circuits.ts'
import { readInstance, settingOf } from '#lib/stellar/asset.ts'
import type { Network } from '#lib/stellar/network.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import { openHolder } from '#lib/wallet/keys.ts'
import type { Prover } from '#lib/wallet/prover.ts'
import { requireSameKeys } from '#lib/wallet/verification-keys.ts'
import { openProgress } from './progress.ts'
import { RELAY_TIMES, type Relay, type RelayTimes } from './relay.ts'

/** Puts a relay together. Asks neither ledger nor database yet. */
export function openRelay(
  given: Omit<Relay, 'deployment' | 'channels' | 'times' | 'showProgress'> & {
    prover: Prover
    /** the keys of the accounts that pay */
    signers: readonly Keypair[]
    times?: Partial<RelayTimes>
  },
): Relay {
  const { prover, signers, times, ...rest } = given
  let known: Promise<Deployment> | undefined
  return {
    ...rest,
    channels: signers.map((signer) => ({ ...openHolder(signer, rest.token), address: signer.publicKey() })),
    times: { ...RELAY_TIMES, ...times },
    showProgress: openProgress(),
    deployment: () => {
      known ??= readDeployment(given.network, given.token, discreet(prover)).catch((error: unknown) => {
        known = undefined
        throw error
      })
      return known
    },
  }
}

/** A prover knows the amounts, and the message of a foreign one may tell them: only that it failed gets into the log. */
function discreet(prover: Prover): Prover {
  return {
    ...prover,
    prove: (statement) =>
      prover.prove(statement).catch((error: unknown) => {
        if (error instanceof ProverFault) throw error
        throw new Error(`the prover failed: ${error instanceof Error ? error.name : typeof error}`)
      }),
  }
}

/**
 * The token keeps the registry of auditors and the verifier that it was made with in its instance storage.
 * @throws ConfigurationError if the verifier would take no proof of this prover
 */
async function readDeployment(network: Network, token: string, prover: Prover): Promise<Deployment> {
  const instance = await readInstance(network.server, token)
  const auditor = settingOf(instance, 'Auditor')
  if (auditor?.type !== 'scvAddress') {
    throw new Refusal('not-wired', 'the configured contract does not name its auditors as a confidential token does')
  }
  const deployed = { rpc: network.server, passphrase: network.passphrase, token }
  const verifier = settingOf(instance, 'Verifier')
  if (prover.verificationKeys && verifier?.type !== 'scvAddress') {
    throw new ConfigurationError('CONFIDENTIAL_TOKEN', 'the contract names no verifier of proofs')
  }
  if (prover.verificationKeys && verifier?.type === 'scvAddress') {
    await requireSameKeys(deployed, Address.fromScVal(verifier).toString(), prover)
  }
  return { ...deployed, auditor: Address.fromScVal(auditor).toString(), prover }
}
