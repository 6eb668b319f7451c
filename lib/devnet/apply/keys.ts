import { hash } from 'node:crypto'
import { Keypair } from '@stellar/stellar-sdk'
import { encodePoint, H, multiply, ORDER } from '#lib/wallet/grumpkin.ts'

/** The keys of a new network, derived from the passphrase and so public. */
export interface DevnetKeys {
  /** owns all XLM; as in stellar-core, its seed is the network id */
  readonly root: Keypair
  /** issues the test USDC */
  readonly issuer: Keypair
  /** viewing key of auditor 0: a scalar of Grumpkin */
  readonly auditor: bigint
}

export function devnetKeys(passphrase: string): DevnetKeys {
  return {
    root: Keypair.fromRawEd25519Seed(sha256(passphrase)),
    issuer: Keypair.fromRawEd25519Seed(sha256(`${passphrase} issuer of the test USDC`)),
    auditor: BigInt(`0x${sha256(`${passphrase} viewing key of auditor 0`).toString('hex')}`) % ORDER,
  }
}

/** 64 bytes: the public key of a viewing key */
export function auditorPoint(viewingKey: bigint): Uint8Array {
  return encodePoint(multiply(H, viewingKey))
}

/** One of friendbot's accounts. Their sequence numbers let it fund many accounts per ledger. */
export function friendbotChannel(passphrase: string, index: number): Keypair {
  return Keypair.fromRawEd25519Seed(sha256(`${passphrase} friendbot channel ${index}`))
}

const sha256 = (text: string): Buffer => hash('sha256', text, 'buffer')
