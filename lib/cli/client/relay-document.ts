import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { RELAY_DOCUMENT, type RelayDocument } from '#lib/wallet/deployment.ts'
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
