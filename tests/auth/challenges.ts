import { createHash } from 'node:crypto'
import { Account, Keypair, Memo, Operation, Transaction, TransactionBuilder, xdr } from '@stellar/stellar-sdk'
import { buildChallenge, type Sep10Settings } from '#lib/auth/sep10/challenge.ts'
import type { SessionSettings } from '#lib/auth/session.ts'

/** A key pair for this test, the same in every run. */
export const pair = (name: string) => Keypair.fromRawEd25519Seed(createHash('sha256').update(name).digest())

export const NOW = new Date('2026-05-01T12:00:00Z')
export const NOW_SECONDS = NOW.getTime() / 1000
export const later = (seconds: number) => new Date(NOW.getTime() + seconds * 1000)

export const sep10: Sep10Settings = {
  signer: pair('server'),
  networkPassphrase: 'Standalone Network ; February 2017',
  homeDomain: 'pay.example:8443',
  webAuthDomain: 'pay.example:8443',
}

export const sessions: SessionSettings = {
  secret: 'a secret of the test suite, 32 bytes and more',
  issuer: 'https://pay.example:8443',
  audience: 'https://pay.example:8443',
  ttl: 3600,
}

/** A challenge as the server issues it, signed by `signers` as wallets do. */
export function signedChallenge(account: string, signers: Keypair[], issued = NOW, nonce?: Uint8Array): string {
  const transaction = new Transaction(
    buildChallenge(sep10, { account }, issued, nonce).transaction,
    sep10.networkPassphrase,
  )
  transaction.sign(...signers)
  return transaction.toXdr()
}

export const NONCE = createHash('sha384').update('nonce').digest('base64')

/** A challenge that this server never issues but that is signed with its key. Each part can be chosen. */
export function craftChallenge(
  fields: {
    account?: string
    server?: Keypair
    source?: string
    sequence?: string
    name?: string
    value?: string | null
    operations?: xdr.Operation[]
    bounds?: { minTime: number; maxTime: number }
    memo?: Memo
    passphrase?: string
  },
  signers: Keypair[],
): Transaction {
  const server = fields.server ?? sep10.signer
  const account = fields.account ?? pair('alice').publicKey()
  const builder = new TransactionBuilder(new Account(fields.source ?? server.publicKey(), fields.sequence ?? '-1'), {
    fee: '100',
    networkPassphrase: fields.passphrase ?? sep10.networkPassphrase,
    timebounds: fields.bounds ?? { minTime: NOW_SECONDS, maxTime: NOW_SECONDS + 300 },
    memo: fields.memo ?? Memo.none(),
  })
  const operations = fields.operations ?? [
    Operation.manageData({
      source: account,
      name: fields.name ?? `${sep10.homeDomain} auth`,
      value: fields.value === undefined ? NONCE : fields.value,
    }),
    webAuthDomain(),
  ]
  for (const operation of operations) builder.addOperation(operation)
  const transaction = builder.build()
  transaction.sign(server, ...signers)
  return transaction
}

export const nonceOperation = (source?: string) =>
  Operation.manageData({ name: `${sep10.homeDomain} auth`, value: NONCE, ...(source !== undefined && { source }) })

export const webAuthDomain = (value: string | null = sep10.webAuthDomain, source = sep10.signer.publicKey()) =>
  Operation.manageData({ source, name: 'web_auth_domain', value })

/** Decodes a challenge into its parts. */
function openChallenge(text: string) {
  const envelope = xdr.TransactionEnvelope.fromXdr(text, 'base64')
  if (envelope.type !== 'envelopeTypeTx' || envelope.v1.tx.cond.type !== 'precondTime') throw new Error('no challenge')
  return { ...envelope.v1, timeBounds: envelope.v1.tx.cond.value }
}

/** The challenge with its signatures transformed by `change`. */
export function withSignatures(
  text: string,
  change: (signatures: xdr.DecoratedSignature[]) => xdr.DecoratedSignature[],
): string {
  const { tx, signatures } = openChallenge(text)
  const changed = new xdr.TransactionV1Envelope({ tx, signatures: change([...signatures]) })
  return xdr.TransactionEnvelope.envelopeTypeTx(changed).toXdr('base64')
}

/** The same transaction in the envelope form used before protocol 13. */
export function asV0(text: string): string {
  const { tx, signatures, timeBounds } = openChallenge(text)
  const { fee, seqNum, memo, operations } = tx
  const sourceAccountEd25519 = sep10.signer.rawPublicKey()
  const ext = xdr.TransactionV0Ext.v0()
  const v0 = new xdr.TransactionV0({ sourceAccountEd25519, fee, seqNum, timeBounds, memo, operations, ext })
  return xdr.TransactionEnvelope.envelopeTypeTxV0(new xdr.TransactionV0Envelope({ tx: v0, signatures })).toXdr('base64')
}
