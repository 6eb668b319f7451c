import { Keypair } from '@stellar/stellar-sdk'
import type { JWK } from 'jose'
import { z } from 'zod'
import { decodeBase64, encodeBase64 } from '#lib/text/base64.ts'
import { parseJson } from '#lib/text/json.ts'
import { RELAY_DOCUMENT } from './deployment.ts'
import { privateKey } from './seal-key.ts'
import { type Signer, signatureOf } from './signer.ts'
import { WalletError } from './wallet-error.ts'

/** The message whose signature is the root of a signer's key for approvals. */
const MESSAGE = 'confidential-payroll/v1/key for approvals'

/**
 * The key (P-256) to which a preparer encrypts what an approver has to see. It follows from a signature of the approver's wallet, and so
 * needs no storage. @throws WalletError `signature-invalid`
 */
export async function approvalKey(signer: Signer): Promise<JWK> {
  return privateKey(await signatureOf(signer, MESSAGE), `${MESSAGE}\n${signer.address}`)
}

const NAMED_KEY = z.object({
  signer: z.string().regex(/^G[A-Z2-7]{55}$/),
  key: RELAY_DOCUMENT.shape.publicKey,
  /** base64 (SEP-53) */
  signature: z.string(),
})

/** An approver's public key, and its signature over it, so that it cannot be replaced on the way. */
export type NamedApprovalKey = z.output<typeof NAMED_KEY>

const messageOf = ({ signer, key }: Omit<NamedApprovalKey, 'signature'>) =>
  `Encrypt amounts for ${signer} to ${key.x} ${key.y}`

/** The public half of a signer's key for approvals, signed by it. @throws WalletError `signature-invalid` */
export async function nameApprovalKey(signer: Signer): Promise<NamedApprovalKey> {
  const { x, y } = await approvalKey(signer)
  const named = { signer: signer.address, key: RELAY_DOCUMENT.shape.publicKey.parse({ kty: 'EC', crv: 'P-256', x, y }) }
  return { ...named, signature: encodeBase64(await signatureOf(signer, messageOf(named))) }
}

/**
 * The public key in the text of `nameApprovalKey`.
 * @param signers of the account that pays, as the ledger has them
 * @throws WalletError `signature-invalid` if it is not the key of one of them
 */
export function openApprovalKey(text: string, signers: readonly { key: string }[]): JWK {
  const { data } = NAMED_KEY.safeParse(parseJson(text))
  const signature = decodeBase64(data?.signature ?? '')
  const isTheirs =
    data &&
    signature?.length === 64 &&
    signers.some(({ key }) => key === data.signer) &&
    Keypair.fromPublicKey(data.signer).verifyMessage(messageOf(data), signature)
  if (isTheirs) return data.key
  throw new WalletError('signature-invalid', 'the key for approvals is not that of a signer of the account')
}
