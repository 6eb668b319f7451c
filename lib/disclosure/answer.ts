import { hexToBytes } from '@noble/hashes/utils.js'
import type { DisclosureCircuit } from '#lib/prover/disclosure-circuits.ts'
import { drawSalt, type RandomSource } from '#lib/wallet/keys.ts'
import { DisclosureError } from './disclosure-error.ts'
import type { DisclosureSource } from './ledger-source.ts'
import type { DisclosureProver, Secrets } from './prover.ts'
import { type DisclosureStatement, publicInputs } from './public-inputs.ts'
import { type DisclosureRequest, thresholdOf } from './request.ts'
import { type Addressee, seal } from './sealing.ts'
import { sealTagOf } from './verify.ts'

export interface DiscloserContext {
  source: DisclosureSource
  prover: DisclosureProver
  random: RandomSource
}

/** Seals the value to the requester, unless the request has a threshold, and proves. */
export async function proveAnswer(
  { prover, random }: DiscloserContext,
  request: DisclosureRequest,
  statement: Omit<DisclosureStatement, 'addressee' | 'disclosed'>,
  { secrets, value }: { secrets: Secrets; value: bigint },
) {
  const addressee: Addressee = {
    key: hexToBytes(request.key),
    nonce: hexToBytes(request.nonce),
  }
  const { circuit } = statement
  const threshold = thresholdOf(request)
  if (threshold !== undefined) {
    const isKept = isAtMost(circuit) ? value <= threshold : value >= threshold
    if (!isKept) throw new DisclosureError('not-true', 'the value does not keep the threshold')
    const proof = await prover.prove(
      circuit,
      publicInputs({ ...statement, addressee, disclosed: { threshold } }),
      secrets,
    )
    return { proof, sealed: undefined }
  }
  const rD = drawSalt(random)
  const sealed = seal(sealTagOf(circuit), value, addressee, rD)
  const proof = await prover.prove(circuit, publicInputs({ ...statement, addressee, disclosed: { sealed } }), {
    ...secrets,
    r_d: rD,
  })
  return { proof, sealed }
}

const isAtMost = ({ disclosed }: DisclosureCircuit): boolean => disclosed === 'at-most'

export const notRegistered = (account: string) =>
  new DisclosureError('not-registered', `${account} has no confidential account`)

export const otherKeys = (owner: string) => new DisclosureError('other-keys', `the keys are not those of ${owner}`)
