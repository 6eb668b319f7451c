/**
 * Test sessions on the embedded ledger. The wallet is made in this page, and its key leaves with it: the service never
 * sees a signing key.
 */
const issuer = document.body.dataset.issuer ?? ''
const status = document.querySelector('.test-session [role="status"]')

const SIGN_INS = { ledger: signInWithWallet, idp: signInWithEmail }

for (const button of document.querySelectorAll('.test-session button')) {
  button.addEventListener('click', async () => {
    status.textContent = 'Signing in…'
    try {
      const { session, sub } = await SIGN_INS[button.dataset.kind]()
      window.payrollViewer.preauthorizeApiKey('session', session)
      status.textContent = `Signed in as ${sub}. What you try below carries this session.`
    } catch (error) {
      status.textContent = `It did not work: ${error instanceof Error ? error.message : error}`
    }
  })
}

async function signInWithEmail() {
  const sub = `tester-${crypto.randomUUID().slice(0, 8)}`
  const { access_token } = await ask(`${issuer}/token`, { sub, email: `${sub}@example.com` })
  return await ask('/api/auth/idp', { token: access_token })
}

async function signInWithWallet() {
  const keys = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
  const publicKey = new Uint8Array(await crypto.subtle.exportKey('raw', keys.publicKey))
  const account = accountAddress(publicKey)
  const challenge = await ask(`/api/auth/sep10/challenge?account=${account}`)
  const envelope = Uint8Array.from(atob(challenge.transaction), (character) => character.charCodeAt(0))
  // A challenge is the type of its envelope (4 bytes), the transaction, and one signature of the server's (76 bytes).
  const transaction = envelope.slice(4, -76)
  const network = await sha256(new TextEncoder().encode(challenge.network_passphrase))
  const hash = await sha256(concat(network, envelope.slice(0, 4), transaction))
  const signature = new Uint8Array(await crypto.subtle.sign('Ed25519', keys.privateKey, hash))
  const own = concat(publicKey.slice(-4), Uint8Array.of(0, 0, 0, 64), signature)
  const signed = concat(envelope.slice(0, -76), Uint8Array.of(0, 0, 0, 2), envelope.slice(-72), own)
  return await ask('/api/auth/sep10/verify', { transaction: btoa(String.fromCharCode(...signed)) })
}

async function ask(url, body) {
  const sent = body && {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  }
  const response = await fetch(url, sent)
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.error_description ?? answer.error)
  return answer
}

const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))

const concat = (...parts) => Uint8Array.from(parts.flatMap((part) => [...part]))

/** A public key as an address (SEP-23): version, key and checksum in base32. */
function accountAddress(publicKey) {
  const payload = concat(Uint8Array.of(6 << 3), publicKey)
  const checksum = crc16(payload)
  const bits = [...payload, checksum & 0xff, checksum >> 8].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return bits.replaceAll(/.{5}/g, (five) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'[Number.parseInt(five, 2)])
}

/** CRC-16/XMODEM. */
function crc16(bytes) {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff
  }
  return crc
}
