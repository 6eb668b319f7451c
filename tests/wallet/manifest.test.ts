import { createHash } from 'node:crypto'
import { type Keypair, Networks } from '@stellar/stellar-sdk'
import { describe, expect, test } from 'vitest'
import {
  formatManifest,
  hashSeal,
  isSignedManifest,
  type Manifest,
  parseManifest,
  runMessage,
  signaturesOn,
  signManifest,
} from '#lib/wallet/manifest.ts'
import { keypairSigner } from '#lib/wallet/signer.ts'
import { keypair, TOKEN } from './fixtures.ts'

const employer = keypair('employer')
const [first, second] = [keypair('channel 1').publicKey(), keypair('channel 2').publicKey()].sort() as [string, string]
const payees = [keypair('payee 1').publicKey(), TOKEN] as const
const id = (digit: number) => `00000000-0000-4000-8000-00000000000${digit}`

const manifest: Manifest = {
  passphrase: Networks.TESTNET,
  token: TOKEN,
  batch: id(1),
  account: employer.publicKey(),
  delegations: [
    { channel: second, liveUntilLedger: 2_000 },
    { channel: first, liveUntilLedger: 1_000 },
  ],
  payouts: [
    { payout: id(3), contractor: id(5), address: payees[1], channel: second, sealHash: hashSeal('another seal') },
    { payout: id(2), contractor: id(4), address: payees[0], channel: first, sealHash: hashSeal('a seal') },
  ],
}
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

const TEXT = `confidential-payroll-run/1
Test SDF Network ; September 2015
${TOKEN}
00000000-0000-4000-8000-000000000001
${employer.publicKey()}
delegation ${first} 1000
delegation ${second} 2000
payout 00000000-0000-4000-8000-000000000002 00000000-0000-4000-8000-000000000004 ${payees[0]} ${first} ${sha256('a seal')}
payout 00000000-0000-4000-8000-000000000003 00000000-0000-4000-8000-000000000005 ${payees[1]} ${second} ${sha256('another seal')}
`

describe('the manifest of a run', () => {
  test('lists the channels by address and the payouts by id', () => {
    expect(formatManifest(manifest)).toBe(TEXT)
  })

  test('is read back from its text', () => {
    const read = parseManifest(TEXT)
    expect(read).toMatchObject({ passphrase: Networks.TESTNET, token: TOKEN, batch: id(1) })
    expect(read && formatManifest(read)).toBe(TEXT)
  })

  test.each([
    ['another version', TEXT.replace('run/1', 'run/2')],
    ['no LF at the end', TEXT.trimEnd()],
    ['an additional line', `${TEXT}\n`],
    ['CRLF', TEXT.replaceAll('\n', '\r\n')],
    ['another order', TEXT.replace(/(delegation .*\n)(delegation .*\n)/, '$2$1')],
    ['a payout that occurs twice', TEXT.replace(/(payout .*\n)(payout .*\n)/, '$1$1')],
    ['a ledger with a leading zero', TEXT.replace(' 1000', ' 01000')],
  ])('cannot be parsed from a text with %s', (_, text) => {
    expect(text).not.toBe(TEXT)
    expect(parseManifest(text)).toBeUndefined()
  })

  test('is signed in a message that names batch, network, count and hash', async () => {
    const message = `Run batch ${id(1)} on ${Networks.TESTNET}: 2 payouts, manifest ${sha256(TEXT)}`
    expect(runMessage(manifest)).toBe(message)
    const signature = Buffer.from(await signManifest(keypairSigner(employer), manifest), 'base64')
    expect(employer.verifyMessage(message, new Uint8Array(signature))).toBe(true)
  })

  test.each([
    ['a batch that is no UUID', { batch: 'openzeppelin/confidential-token/v1/sk' }],
    ['a passphrase of several lines', { passphrase: 'a\nb' }],
  ])('is not signed for %s', async (_, changed) => {
    const result = signManifest(keypairSigner(employer), { ...manifest, ...changed })
    await expect(result).rejects.toMatchObject({ code: 'malformed' })
  })
})

describe('the signature of a run', () => {
  const other = keypair('other')
  const account = (weights: [number, number], medium: number) => ({
    signers: [
      { key: employer.publicKey(), weight: weights[0] },
      { key: other.publicKey(), weight: weights[1] },
    ],
    thresholds: { medium },
  })
  const signature = Buffer.from(employer.signMessage(runMessage(manifest))).toString('base64')

  const signed = (by: Keypair) => signManifest(keypairSigner(by), manifest)

  test('is accepted from a signer who reaches the medium threshold alone', async () => {
    expect(isSignedManifest(manifest, [signature], account([2, 1], 2))).toBe(true)
    expect(isSignedManifest(manifest, [await signed(other)], account([1, 2], 2))).toBe(true)
  })

  test('is accepted from signers who reach the threshold together, and each counts once', async () => {
    expect(isSignedManifest(manifest, [signature], account([1, 1], 2))).toBe(false)
    expect(isSignedManifest(manifest, [signature, signature, signature], account([1, 1], 2))).toBe(false)
    expect(isSignedManifest(manifest, [signature, await signed(other)], account([1, 1], 2))).toBe(true)
    expect(isSignedManifest(manifest, [signature, await signed(other)], account([1, 1], 3))).toBe(false)
    expect(isSignedManifest(manifest, [signature, await signed(keypair('stranger'))], account([1, 1], 2))).toBe(false)
  })

  test('is needed even where the threshold asks for none', () => {
    expect(isSignedManifest(manifest, [], account([1, 1], 0))).toBe(false)
    expect(isSignedManifest(manifest, [signature], account([1, 1], 0))).toBe(true)
  })

  test('names its signers, in their order on the account', async () => {
    const both = [await signed(other), 'no signature', signature]
    expect(signaturesOn(manifest, both, account([3, 4], 9))).toEqual([
      { key: employer.publicKey(), weight: 3, signature },
      { key: other.publicKey(), weight: 4, signature: both[0] },
    ])
  })

  test('is rejected for any other manifest', () => {
    const [payout, ...payouts] = manifest.payouts
    if (!payout) throw new Error('the manifest has no payout')
    const [delegation, ...delegations] = manifest.delegations
    if (!delegation) throw new Error('the manifest has no delegation')
    const changed = [
      { passphrase: Networks.PUBLIC },
      { token: payees[0] },
      { batch: id(9) },
      { account: other.publicKey() },
      { delegations },
      { delegations: [{ ...delegation, liveUntilLedger: 3_000 }, ...delegations] },
      { payouts },
      ...(['payout', 'contractor', 'address', 'channel', 'sealHash'] as const).map((name) => ({
        payouts: [{ ...payout, [name]: name === 'sealHash' ? hashSeal('x') : id(9) }, ...payouts],
      })),
    ]
    const accepted = changed.filter((change) =>
      isSignedManifest({ ...manifest, ...change }, [signature], account([1, 1], 1)),
    )
    expect(accepted).toEqual([])
  })

  test.each([
    ['empty', ''],
    ['of 63 bytes', Buffer.alloc(63).toString('base64')],
    ['in hex', Buffer.from(signature, 'base64').toString('hex')],
    ['without padding', signature.replace(/=+$/, '')],
  ])('is rejected when it is %s', (_, text) => {
    expect(isSignedManifest(manifest, [text], account([1, 1], 1))).toBe(false)
  })
})
