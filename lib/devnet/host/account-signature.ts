import { createHash } from 'node:crypto'
import { StrKey, type xdr } from '@stellar/stellar-sdk'
import { verifyEd25519 } from '#lib/stellar/node/ed25519.ts'
import type { Budget } from './budget.ts'
import { accountKey } from './entry-key.ts'
import { contractError, hostError } from './host-error.ts'
import { address as accountValue, bytesOf, fieldsOf } from './scval.ts'
import type { Storage } from './storage.ts'

const MAXIMUM_SIGNATURES = 20

/**
 * Instructions to authenticate an account by one signature, including the nonce, as the network meters them, and for
 * each further signature, by the cost model: one verification and one public key.
 */
const AUTHENTICATION = 494_275
const FURTHER_SIGNATURE = 418_800

export function authenticationCost(signatures: number): number {
  return AUTHENTICATION + FURTHER_SIGNATURE * (signatures - 1)
}

/**
 * The account contract built into the host: `signature` is a vector of maps {public_key, signature}, strictly
 * ascending by key; every key must be a signer with weight, and together they reach the MEDIUM threshold.
 * `preimage` is hashed once to the 32 bytes that were signed.
 */
export function verifyAccount(input: {
  readonly address: string
  readonly preimage: Uint8Array
  readonly signature: xdr.ScVal
  readonly storage: Storage
  readonly budget: Budget
}): void {
  if (!StrKey.isValidEd25519PublicKey(input.address)) {
    throw hostError('Context', 'MissingValue', `no contract here implements __check_auth for ${input.address}`)
  }
  const account = readAccount(input.address, input.storage)
  const payload = createHash('sha256').update(input.preimage).digest()
  const weights = weightsOf(account)
  const signatures = decodeSignatures(input.signature)
  input.budget.spend(authenticationCost(signatures.length))
  let weight = 0
  for (const { publicKey, signature } of signatures) {
    const own = weights.get(Buffer.from(publicKey).toString('hex')) ?? 0
    if (own === 0) throw contractError(5, 'the signer has no weight in the account')
    if (!verifyEd25519(publicKey, payload, signature)) throw hostError('Crypto', 'InvalidInput', 'invalid signature')
    weight += own
  }
  const medium = account.thresholds.value[2] ?? 0
  if (weight < medium) throw contractError(5, `signature weight ${weight} is below the medium threshold ${medium}`)
}

/** Reads the account and adds it to the footprint. @throws Error(Contract, #6) without one */
export function readAccount(address: string, storage: Storage): xdr.AccountEntry {
  const data = storage.get(accountKey(address))?.data
  if (data?.type !== 'account') throw contractError(6, 'account entry is missing', accountValue(address))
  return data.account
}

/** Weights of the master key and the ed25519 signers, by hex key. Other signers cannot sign an authorization. */
function weightsOf(account: xdr.AccountEntry): Map<string, number> {
  const weights = new Map([[account.accountId.value.toString(), account.thresholds.value[0] ?? 0]])
  for (const { key, weight } of account.signers) {
    if (key.type === 'signerKeyTypeEd25519') weights.set(key.ed25519.toString(), weight)
  }
  return weights
}

function decodeSignatures(value: xdr.ScVal): { publicKey: Uint8Array; signature: Uint8Array }[] {
  const items = value.type === 'scvVec' ? (value.vec ?? []) : []
  if (items.length === 0 || items.length > MAXIMUM_SIGNATURES) {
    throw contractError(5, `an account is authenticated by a vector of 1 to ${MAXIMUM_SIGNATURES} signatures`)
  }
  const signatures = items.map((item) => {
    const fields = fieldsOf(item)
    const publicKey = bytesOf(fields?.get('public_key'))
    const signature = bytesOf(fields?.get('signature'))
    if (fields?.size !== 2 || publicKey?.length !== 32 || signature?.length !== 64) {
      throw contractError(5, 'a signature is a map of public_key (32 bytes) and signature (64 bytes)')
    }
    return { publicKey, signature }
  })
  for (const [index, { publicKey }] of signatures.entries()) {
    const previous = signatures[index - 1]
    if (previous && Buffer.compare(previous.publicKey, publicKey) >= 0) {
      throw contractError(5, 'public keys of the signatures are not in strictly ascending order')
    }
  }
  return signatures
}
