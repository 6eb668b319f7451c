import { encodeBase64 } from '#lib/text/base64.ts'
import { type AuthorizedSigners, hashText, isSignedBy } from '#lib/wallet/manifest.ts'
import { type Signer, signatureOf } from '#lib/wallet/signer.ts'
import type { EventReference } from './bundle.ts'
import { DisclosureError } from './disclosure-error.ts'

/** The payments from its delegation that an owner lets a channel disclose, to the requester of one request. */
export interface Authorization {
  passphrase: string
  /** the owner, G… */
  account: string
  /** G… */
  channel: string
  /** the content of the request file, byte for byte */
  request: string
  payments: readonly EventReference[]
}

/**
 * The text that the owner signs (SEP-53). It names the request and the payments by their hashes.
 * @throws DisclosureError `request-invalid` for a passphrase that would add lines
 */
export function disclosureMessage({ passphrase, account, channel, request, payments }: Authorization): string {
  if (/\p{Cc}/u.test(passphrase)) {
    throw new DisclosureError('request-invalid', 'the network passphrase is not one line of text')
  }
  const lines = payments.map(({ transaction, eventIndex }) => `${transaction} ${eventIndex}\n`).toSorted()
  const hashes = `request ${hashText(request)}, payments ${hashText(lines.join(''))}`
  return `Disclose ${payments.length} payments of ${account} by ${channel} on ${passphrase}: ${hashes}`
}

/** The owner's signature, base64. */
export async function authorizeDisclosure(signer: Signer, authorization: Authorization): Promise<string> {
  return encodeBase64(await signatureOf(signer, disclosureMessage(authorization)))
}

/**
 * Requires that the owner of the delegation has signed this disclosure.
 * @param signers of the owner's account, from the ledger
 * @throws DisclosureError `not-authorized`
 */
export function requireAuthorization(
  authorization: Authorization,
  signature: string,
  signers: AuthorizedSigners,
): void {
  if (isSignedBy(disclosureMessage(authorization), signature, signers)) return
  const { account, payments } = authorization
  const these = payments.length === 1 ? 'this payment' : `these ${payments.length} payments`
  throw new DisclosureError('not-authorized', `${account} has not signed the disclosure of ${these} for this request`)
}
