import { StrKey, type xdr } from '@stellar/stellar-sdk'
import { Refusal } from '#lib/refusal/refusal.ts'
import type { AccountAuth } from '#lib/stellar/account.ts'
import { verifyEd25519 } from '#lib/stellar/node/ed25519.ts'
import { type HintedSignature, weighSignatures } from '#lib/stellar/node/signature-weight.ts'
import type { Sep10Settings } from './challenge.ts'
import { type ChallengeEnvelope, decodeChallenge, invalidChallenge } from './envelope.ts'

/** A valid challenge of this server. The weights of its client signatures have not been checked. */
export interface Challenge {
  account: string
  hash: Uint8Array
  /** The last second of its time bounds. Its hash must be kept until then. */
  expiresAt: Date
  clientSignatures: HintedSignature[]
}

/**
 * Checks everything about a signed challenge that needs no ledger (SEP-10, "Token"). Works like the SDK's
 * readChallengeTx, but verifies the signature with node:crypto, and is stricter where SEP-10 leaves it to the server:
 * no grace period around the time bounds (the SDK allows 300 s), a required web_auth_domain, no memo, no muxed account,
 * no client_domain.
 * @throws Refusal `challenge-invalid`, `challenge-expired`
 */
export function readChallenge(settings: Sep10Settings, transaction: string, now: Date): Challenge {
  const envelope = decodeChallenge(transaction, settings.networkPassphrase)
  const server = settings.signer.rawPublicKey()
  if (!envelope.source || !isSame(envelope.source, server)) throw invalidChallenge('its source is not this server')
  if (envelope.sequence !== 0n) throw invalidChallenge('its sequence number is not 0')
  if (envelope.hasMemo) throw invalidChallenge('it has a memo')
  const expiresAt = checkTime(envelope.timeBounds, now)
  const account = checkOperations(settings, envelope.operations)
  return { account, hash: envelope.hash, expiresAt, clientSignatures: removeServerSignature(envelope, server) }
}

function checkTime(bounds: xdr.TimeBounds | undefined, now: Date): Date {
  if (!bounds || bounds.maxTime === 0n) throw invalidChallenge('it has no time bounds')
  const time = BigInt(Math.floor(now.getTime() / 1000))
  if (time < bounds.minTime) throw invalidChallenge('it is not valid yet')
  if (time > bounds.maxTime) {
    throw new Refusal('challenge-expired')
  }
  return new Date(Number(bounds.maxTime) * 1000)
}

function checkOperations(settings: Sep10Settings, operations: readonly xdr.Operation[]): string {
  const [first, ...others] = operations
  const { source, name, value } = manageDataOf(first)
  if (!source) throw invalidChallenge('its first operation has no source account, or a muxed one')
  if (name !== `${settings.homeDomain} auth`) throw invalidChallenge(`it is not for ${settings.homeDomain}`)
  if (!value || !/^[A-Za-z0-9+/]{64}$/.test(value)) throw invalidChallenge('it has no nonce of 48 bytes')
  const server = settings.signer.rawPublicKey()
  // An account could add this server's key as a signer, and pass with the signature that every challenge has.
  if (isSame(source, server)) throw invalidChallenge("its account is the server's own signing key")
  let hasWebAuthDomain = false
  for (const operation of others.map(manageDataOf)) {
    if (!operation.source || !isSame(operation.source, server)) {
      throw invalidChallenge('it has an operation whose source is not this server')
    }
    // The client domain's key would also have to sign. This server issues no such challenge.
    if (operation.name === 'client_domain') throw invalidChallenge('it has a client_domain')
    if (operation.name !== 'web_auth_domain') continue
    if (operation.value !== settings.webAuthDomain) {
      throw invalidChallenge(`its web_auth_domain is not ${settings.webAuthDomain}`)
    }
    hasWebAuthDomain = true
  }
  if (!hasWebAuthDomain) throw invalidChallenge('it has no web_auth_domain')
  return StrKey.encodeEd25519PublicKey(source)
}

interface ManageData {
  /** Raw key of the operation's source account; undefined if it has none or a muxed one. */
  source: Uint8Array | undefined
  name: string
  value: string | undefined
}

function manageDataOf(operation: xdr.Operation | undefined): ManageData {
  if (operation?.body.type !== 'manageData') throw invalidChallenge('it has operations other than manageData, or none')
  const { dataName, dataValue } = operation.body.value
  const account = operation.sourceAccount
  return {
    source: account?.type === 'keyTypeEd25519' ? account.value.toBytes() : undefined,
    name: dataName.toString(),
    value: dataValue === null ? undefined : Buffer.from(dataValue.toBytes()).toString('latin1'),
  }
}

/** Removes one server signature. A duplicate remains, and is refused because it matches no signer. */
function removeServerSignature(envelope: ChallengeEnvelope, server: Uint8Array): HintedSignature[] {
  const index = envelope.signatures.findIndex(
    ({ hint, signature }) => isSame(hint, server.subarray(28)) && verifyEd25519(server, envelope.hash, signature),
  )
  if (index < 0) throw invalidChallenge('it is not signed by this server, or for another network')
  const others = envelope.signatures.toSpliced(index, 1)
  if (others.length === 0) throw invalidChallenge('it is not signed by the account')
  return others
}

/**
 * Requires that every client signature belongs to a signer, and that together they reach the medium threshold, which
 * payments require. An account that does not exist yet has only its master key.
 * @throws Refusal `challenge-invalid`
 */
export function checkClientSignatures(settings: Sep10Settings, challenge: Challenge, auth: AccountAuth): void {
  const { thresholds, signers } = auth.exists
    ? auth
    : { thresholds: { medium: 1 }, signers: [{ key: challenge.account, weight: 1 }] }
  const server = settings.signer.publicKey()
  const { weight, allValid, repeats } = weighSignatures({
    hash: challenge.hash,
    signatures: challenge.clientSignatures,
    // This server signs every challenge, so its signature proves nothing about the client.
    signers: signers.filter(({ key }) => key !== server),
  })
  if (!allValid) throw invalidChallenge('it has a signature that is not by a signer of the account')
  if (repeats > 0) throw invalidChallenge('it has two signatures by one signer')
  if (weight < thresholds.medium) {
    throw invalidChallenge(`its signatures have weight ${weight}, but the account requires ${thresholds.medium}`)
  }
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0
}
