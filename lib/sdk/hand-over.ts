import { CompactEncrypt, compactDecrypt, importJWK, type JWK } from 'jose'
import type { ConfidentialKeys } from '#lib/wallet/keys.ts'
import { keyIdOf, readSeal } from '#lib/wallet/seal.ts'
import { openOwnSeal, ownSealKey } from '#lib/wallet/seal-key.ts'
import type { BatchState } from './payees.ts'
import { RunError } from './run-error.ts'

/** What an approver sees of a payout: its seal, and the secret that opens it. */
export interface OpenedSeal {
  payout: string
  encryptedAmount: string
  /** of the seal's ephemeral key, base64url */
  secret: string
}

/** The largest text that is decrypted: a batch of 15,000 payouts. */
const LARGEST = 16 * 1024 * 1024

/**
 * Encrypts to an approver what opens the seals of a batch: their ephemeral private keys, and with each the one amount that it hides.
 * Nothing else can be read with them.
 * @param to the approver's public key, from `openApprovalKey`
 * @returns a compact JWE
 * @throws RunError `not-started` for a seal that is not the account's own
 */
export async function handOver(
  { keys, batch, relayKey }: { keys: Pick<ConfidentialKeys, 'vk'>; batch: string; relayKey: JWK },
  payouts: BatchState['payouts'],
  to: JWK,
): Promise<string> {
  const kid = await keyIdOf(relayKey)
  const seals = await Promise.all(
    payouts.map(async ({ id: payout, contractorId: contractor, encryptedAmount = '' }): Promise<OpenedSeal> => {
      const { spender = '', nonce = '' } = readSeal(encryptedAmount) ?? {}
      const binding = { batch, contractor, spender }
      const { d: secret = '' } = ownSealKey(keys, kid, binding, nonce)
      if ((await openOwnSeal(relayKey, binding, { encryptedAmount, secret })) !== undefined)
        return { payout, encryptedAmount, secret }
      throw new RunError('not-started', `the amount of payout ${payout} was not sealed by this account: seal it again`)
    }),
  )
  return await new CompactEncrypt(new TextEncoder().encode(JSON.stringify({ batch, seals })))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM' })
    .encrypt(await importJWK(to, 'ECDH-ES'))
}

/**
 * Decrypts what `handOver` has encrypted.
 * @throws RunError `list-differs` if it is for another key or batch
 */
export async function readHandedOver(key: JWK, batch: string, text: string): Promise<OpenedSeal[]> {
  const given = text.trim()
  const algorithms = { keyManagementAlgorithms: ['ECDH-ES'], contentEncryptionAlgorithms: ['A256GCM'] }
  const opened =
    given.length > LARGEST
      ? undefined
      : await compactDecrypt(given, await importJWK(key, 'ECDH-ES'), algorithms).catch(() => undefined)
  if (!opened) throw new RunError('list-differs', 'the amounts are not encrypted to the key of this signer')
  const content = JSON.parse(new TextDecoder().decode(opened.plaintext)) as { batch?: unknown; seals?: unknown }
  if (content.batch !== batch || !Array.isArray(content.seals))
    throw new RunError('list-differs', 'the amounts are those of another batch')
  return content.seals.map((seal: Partial<OpenedSeal>) => ({
    payout: String(seal.payout),
    encryptedAmount: String(seal.encryptedAmount),
    secret: String(seal.secret),
  }))
}
