/**
 * Signs in with a new wallet, created in this page: the service never sees its key, which is dropped afterwards.
 * Browsers can sign with Ed25519 themselves, so this needs no library.
 */
export async function signInWithNewWallet(): Promise<string> {
  const keys = (await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])) as CryptoKeyPair
  const publicKey = new Uint8Array(await crypto.subtle.exportKey('raw', keys.publicKey))
  const challenge = await ask(`/api/auth/sep10/challenge?account=${accountAddress(publicKey)}`)
  const envelope = Uint8Array.from(atob(challenge.transaction ?? ''), (character) => character.charCodeAt(0))
  // A challenge is the type of its envelope (4 bytes), the transaction, and one signature by the server (76 bytes).
  const transaction = envelope.slice(4, -76)
  const network = await sha256(new TextEncoder().encode(challenge.network_passphrase))
  const hash = await sha256(concat(network, envelope.slice(0, 4), transaction))
  const signature = new Uint8Array(await crypto.subtle.sign('Ed25519', keys.privateKey, hash))
  const own = concat(publicKey.slice(-4), Uint8Array.of(0, 0, 0, 64), signature)
  const signed = concat(envelope.slice(0, -76), Uint8Array.of(0, 0, 0, 2), envelope.slice(-72), own)
  const { session = '' } = await ask('/api/auth/sep10/verify', { transaction: btoa(String.fromCharCode(...signed)) })
  return session
}

/** @throws Error with the service's message */
async function ask(url: string, body?: object): Promise<Record<string, string>> {
  const headers = { 'Content-Type': 'application/json' }
  const response = await fetch(url, body && { method: 'POST', headers, body: JSON.stringify(body) })
  const content = await response.json()
  if (!response.ok) throw new Error(content.error)
  return content
}

const sha256 = async (bytes: Uint8Array<ArrayBuffer>) => new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))

const concat = (...parts: Uint8Array[]) => Uint8Array.from(parts.flatMap((part) => [...part]))

/** A public key as an address (SEP-23): version, key and checksum in base32. */
function accountAddress(publicKey: Uint8Array): string {
  const payload = concat(Uint8Array.of(6 << 3), publicKey)
  const checksum = crc16(payload)
  const bits = [...payload, checksum & 0xff, checksum >> 8].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return bits.replaceAll(/.{5}/g, (five) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.charAt(Number.parseInt(five, 2)))
}

/** CRC-16/XMODEM. */
function crc16(bytes: Uint8Array): number {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff
  }
  return crc
}
