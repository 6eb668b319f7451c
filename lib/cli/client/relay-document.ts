import { readFile } from 'node:fs/promises'
import type { JWK } from 'jose'
import { z } from 'zod'
import { RELAY_DOCUMENT, type RelayDocument } from '#lib/wallet/deployment.ts'
import { keyIdOf } from '#lib/wallet/seal.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'

/**
 * Reads a relay's document, a file or a URL: that of its host, or a deployment document that names it.
 * @throws WalletError `relay-unknown` for a document without a relay
 */
export async function readRelayDocument(source: string): Promise<RelayDocument> {
  const document: unknown = JSON.parse(await readSource(source))
  const named = z.object({ relay: RELAY_DOCUMENT }).safeParse(document)
  const parsed = named.success ? RELAY_DOCUMENT.safeParse(named.data.relay) : RELAY_DOCUMENT.safeParse(document)
  if (parsed.success) return parsed.data
  throw new WalletError('relay-unknown', `${source} names no relay: it has no publicKey and channels`)
}

async function readSource(source: string): Promise<string> {
  if (!/^https?:/.test(source)) return await readFile(source, 'utf8')
  const response = await fetch(source)
  if (!response.ok) throw new Error(`${source} responded with ${response.status}`)
  return await response.text()
}

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
    throw new WalletError('relay-unknown', 'the deployment document names no relay: use --relay-document')
  }
  if (publicKey && (await keyIdOf(publicKey)) !== (await keyIdOf(trusted.publicKey))) {
    throw new WalletError('relay-unknown', "the relay's key is not that of the document: nothing was sealed")
  }
  const unknown = channels.find((channel) => !trusted.channels.includes(channel))
  if (unknown === undefined) return trusted
  throw new WalletError('relay-unknown', `${unknown} is no channel of the relay in the document: nothing was delegated`)
}
