import { CompactEncrypt, calculateJwkThumbprint, decodeProtectedHeader, importJWK, type JWK } from 'jose'

/** The largest amount has this many digits. All amounts are padded to it, so that the length of a seal reveals nothing. */
export const AMOUNT_DIGITS = 16

/** The payee, batch and channel of a sealed amount: it can't be moved to others. */
export interface SealBinding {
  batch: string
  contractor: string
  /** the relay's channel that pays it, G… */
  spender: string
}

/** The public header of a seal: its binding, and the thumbprint (RFC 7638) of the key that opens it. */
interface SealHeader extends SealBinding {
  kid: string
  /** of a seal that its account can open again */
  nonce?: string | undefined
}

/** Names the relays' key in a seal. */
export const keyIdOf = (key: JWK): Promise<string> => calculateJwkThumbprint(key)

/**
 * Seals an amount (base units, at most 16 digits) to the relays: a compact JWE with ECDH-ES and A256GCM (RFC 7516,
 * RFC 7518). The result is a payout's `encryptedAmount`.
 * @param own the nonce in the header, and the private key of the seal that follows from it (`ownSealKey`), which also opens the seal.
 *   By default the key is random
 */
export async function sealPayout(
  key: JWK,
  binding: SealBinding,
  amount: bigint,
  own?: { nonce: string; ephemeral: JWK },
): Promise<string> {
  const { batch, contractor, spender } = binding
  const plaintext = amount.toString().padStart(AMOUNT_DIGITS, '0')
  if (amount <= 0n || plaintext.length > AMOUNT_DIGITS) throw new RangeError('the amount cannot be sealed')
  const jwe = new CompactEncrypt(new TextEncoder().encode(plaintext)).setProtectedHeader({
    ...{ alg: 'ECDH-ES', enc: 'A256GCM', kid: await keyIdOf(key) },
    ...{ batch, contractor, spender, ...(own && { nonce: own.nonce }) },
  })
  if (own) {
    const epk = await importJWK(own.ephemeral, 'ECDH-ES', { extractable: true })
    jwe.setKeyManagementParameters({ epk: epk as CryptoKey })
  }
  return await jwe.encrypt(await importJWK(key, 'ECDH-ES'))
}

/** Reads the header of a seal without its key. Undefined if the text isn't a seal. */
export function readSeal(encryptedAmount: string): SealHeader | undefined {
  if (!/^[\w-]+\.\.[\w-]{16}\.[\w-]+\.[\w-]{22}$/.test(encryptedAmount)) return undefined
  try {
    const { alg, enc, zip, kid, batch, contractor, spender, nonce } = decodeProtectedHeader(encryptedAmount)
    if (alg !== 'ECDH-ES' || enc !== 'A256GCM' || zip !== undefined) return undefined
    const isText = [kid, batch, contractor, spender, nonce ?? ''].every((value) => typeof value === 'string')
    return isText ? ({ kid, batch, contractor, spender, nonce } as SealHeader) : undefined
  } catch {
    return undefined
  }
}
