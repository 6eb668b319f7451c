import type { JWK } from 'jose'
import type { RelayDocument } from './deployment.ts'
import { keyIdOf } from './seal.ts'
import { WalletError } from './wallet-error.ts'

/**
 * Requires a relay's key and channels to be those of a document that the user trusts: the channel gets the money, and the
 * key reads the amounts, so the API alone must not choose either.
 * @throws WalletError `relay-unknown`
 */
export async function requireTrusted(
  trusted: RelayDocument | undefined,
  { publicKey, channels }: { publicKey?: JWK; channels: readonly string[] },
): Promise<RelayDocument> {
  if (!trusted) {
    throw new WalletError('relay-unknown', 'the deployment document names no relay')
  }
  if (publicKey && (await keyIdOf(publicKey)) !== (await keyIdOf(trusted.publicKey))) {
    throw new WalletError('relay-unknown', "the relay's key is not that of the document: nothing was sealed")
  }
  const unknown = channels.find((channel) => !trusted.channels.includes(channel))
  if (unknown === undefined) return trusted
  throw new WalletError(
    'relay-unknown',
    `${unknown} is not a channel of the relay in the document: nothing was delegated`,
  )
}
