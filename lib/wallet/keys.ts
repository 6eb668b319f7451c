import { asciiToBytes, bytesToNumberBE, bytesToNumberLE, numberToBytesLE } from '@noble/curves/utils.js'
import { hkdf } from '@noble/hashes/hkdf.js'
import { sha512 } from '@noble/hashes/sha2.js'
import { concatBytes } from '@noble/hashes/utils.js'
import type { Keypair } from '@stellar/stellar-sdk'
import { encodeField, encodePoint, FIELD, H, multiply } from './grumpkin.ts'
import { hash, TAG } from './poseidon.ts'
import { type Signer, signatureOf, signerOf } from './signer.ts'
import { WalletError } from './wallet-error.ts'

/** The first line of the signed message, and the salt of the key derivation. */
const DOMAIN = 'openzeppelin/confidential-token/v1/sk'

/** The keys of one account in one token contract. Both secrets reveal the amounts; `sk` also spends. */
export interface ConfidentialKeys {
  /** Spending secret, a field element that is not 0. */
  sk: bigint
  /** Viewing secret: decrypts the balance and every amount paid to the account, and cannot spend. */
  vk: bigint
  /** Y = sk · H, 64 bytes. */
  spendingKey: Uint8Array
  /** PVK = vk · H, 64 bytes. It cannot be changed after the registration. */
  viewingKey: Uint8Array
}

/** An account with its Stellar key, or with something else that signs for it, and its confidential keys. */
export interface Holder<By extends Keypair | Signer = Keypair> {
  /** G… */
  address: string
  signer: By
  keys: ConfidentialKeys
}

export type AnyHolder = Holder<Keypair | Signer>

/** One field element for a strkey of 56 characters (G… or C…): Poseidon2 of its two halves, little-endian. */
export function addressToField(strkey: string): bigint {
  if (!/^[A-Z2-7]{56}$/.test(strkey)) throw new WalletError('malformed', 'an address is a strkey of 56 characters')
  const limb = (text: string) => bytesToNumberLE(asciiToBytes(text))
  return hash(TAG.address, limb(strkey.slice(0, 28)), limb(strkey.slice(28)))
}

/**
 * Derives an account's keys in a token contract from its Stellar key, the same on every device: HKDF-SHA-512 over a SEP-53
 * signature that names contract and account (confidential token SDK specification, Key Derivation). Throws without a secret
 * key.
 */
export function deriveKeys(signer: Keypair, token: string): ConfidentialKeys {
  const account = signer.publicKey()
  return keysFromSignature(signer.signMessage(keyMessage(account, token)), account, token)
}

/** The message whose SEP-53 signature is the root of the keys: anyone who has it can spend the balance. */
const keyMessage = (account: string, token: string): string => `${DOMAIN}\n${token}\n${account}`

function keysFromSignature(root: Uint8Array, account: string, token: string): ConfidentialKeys {
  const salt = asciiToBytes(DOMAIN)
  const bound = concatBytes(encodeField(addressToField(token)), encodeField(addressToField(account)))
  for (let counter = 0; ; counter += 1) {
    const sk = fieldFrom(hkdf(sha512, root, salt, concatBytes(bound, numberToBytesLE(counter, 4)), 32))
    const keys = sk === undefined ? undefined : keysOf(sk, token)
    if (keys) return keys
  }
}

/** The keys of an imported spending secret. WalletError `malformed` for a secret that no circuit accepts. */
export function importKeys(sk: bigint, token: string): ConfidentialKeys {
  const keys = sk > 0n && sk < FIELD ? keysOf(sk, token) : undefined
  if (!keys) throw new WalletError('malformed', 'not a spending secret')
  return keys
}

/** The viewing key of an owner's delegations to a spender (G… or C…), the same for all delegations of the pair. */
export function deriveDelegationKey(vk: bigint, spender: string): bigint {
  return hash(TAG.delegationKey, vk, addressToField(spender))
}

export function openHolder(signer: Keypair, token: string): Holder {
  return { address: signer.publicKey(), signer, keys: deriveKeys(signer, token) }
}

/**
 * Opens the confidential account of a signer, such as a wallet extension, which is asked for one message signature.
 * @throws WalletError `signature-invalid` if the signature is not that of the account
 */
export async function openWallet(signer: Signer, token: string): Promise<Holder<Signer>> {
  const { address } = signer
  const signature = await signatureOf(signer, keyMessage(address, token))
  return { address, signer, keys: keysFromSignature(signature, address, token) }
}

/**
 * Derives a holder's keys again. A signer whose signatures differ each time, such as a threshold signer, would derive others,
 * and the balance under the first ones would be lost.
 * @throws WalletError `signer-not-deterministic`
 */
export async function requireRepeatable({ signer, address, keys }: AnyHolder, token: string): Promise<void> {
  const again = await openWallet(signerOf(signer), token)
  if (again.keys.sk === keys.sk) return
  throw new WalletError(
    'signer-not-deterministic',
    `the signer of ${address} did not derive the same keys again, so the balance could be lost: nothing is registered`,
  )
}

/** Random bytes. Injected, so tests are repeatable. */
export type RandomSource = (size: number) => Uint8Array

/** Draws a salt, uniform among the non-zero field elements. A salt that is used twice reveals the amounts it hides. */
export function drawSalt(random: RandomSource): bigint {
  for (;;) {
    const salt = fieldFrom(random(32))
    if (salt !== undefined) return salt
  }
}

/** Undefined for a viewing secret of 0, which would make every shared secret public (register constraint R5). */
function keysOf(sk: bigint, token: string): ConfidentialKeys | undefined {
  const vk = hash(TAG.viewingKey, sk, addressToField(token))
  if (vk === 0n) return undefined
  return { sk, vk, spendingKey: encodePoint(multiply(H, sk)), viewingKey: encodePoint(multiply(H, vk)) }
}

/** Rejection sampling: the top two bits cleared, then in [1, FIELD) or nothing. */
function fieldFrom(bytes: Uint8Array): bigint | undefined {
  const candidate = bytesToNumberBE(bytes) & ((1n << 254n) - 1n)
  return candidate > 0n && candidate < FIELD ? candidate : undefined
}
