import { createHash } from 'node:crypto'
import { type Keypair, xdr } from '@stellar/stellar-sdk'
import type { RefusalReason } from '#lib/refusal/sponsor-refusal.ts'
import { type AccountAuth, authOf } from '#lib/stellar/account.ts'
import { accountEntry, signerKey } from '../support/fake-rpc.ts'
import {
  envelopeOf,
  pair,
  payer,
  signTransaction,
  sponsor,
  stranger,
  transactionHash,
  transferTransaction,
} from '../support/inner-transaction.ts'

/** A signed transfer, its account, and the expected verdict on its signatures: the reason of the refusal, or nothing. */
interface SignatureCase {
  name: string
  envelope: string
  account: AccountAuth
  reason?: RefusalReason
}

const [bob, carol] = [pair('bob'), pair('carol')]
const tx = transferTransaction()
const digest = transactionHash(tx)
const signed = (...signers: Keypair[]) => signTransaction(tx, signers)
const elsewhere = (...signers: Keypair[]) => signTransaction(tx, signers, 'Test SDF Network ; September 2015')
const account = (given?: Parameters<typeof accountEntry>[1]) =>
  authOf(payer.publicKey(), accountEntry(payer.publicKey(), given))
const signer = (key: Keypair, weight: number) => ({ key: signerKey(key), weight })
const twoOfThree = account({ thresholds: [1, 1, 2, 3], signers: [signer(bob, 1), signer(carol, 1)] })

const decorated = (key: Keypair, change: (signature: Buffer) => Uint8Array = (signature) => signature, hint = key) =>
  new xdr.DecoratedSignature({ hint: hint.signatureHint(), signature: change(Buffer.from(key.sign(digest))) })
const garbage = new xdr.DecoratedSignature({ hint: payer.signatureHint(), signature: new Uint8Array(64).fill(1) })
const preimage = new Uint8Array(32).fill(7)
const hashX = createHash('sha256').update(preimage).digest()

/** S + L: the same signature in a second form. */
function malleated(signature: Buffer): Uint8Array {
  const order = 2n ** 252n + 27742317777372353535851937790883648493n
  const s = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`) + order
  const second = Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse()
  return Buffer.concat([signature.subarray(0, 32), second])
}

export const SIGNATURE_CASES: readonly SignatureCase[] = [
  { name: 'the master key alone', envelope: signed(payer), account: account() },
  { name: 'nobody', envelope: signed(), account: account(), reason: 'too-little-weight' },
  { name: 'a stranger', envelope: signed(stranger), account: account(), reason: 'bad-signature' },
  { name: 'the sponsor', envelope: signed(sponsor), account: account(), reason: 'bad-signature' },
  { name: 'on another network', envelope: elsewhere(payer), account: account(), reason: 'bad-signature' },
  {
    name: 'garbage with the right hint',
    envelope: envelopeOf(tx, [garbage]),
    account: account(),
    reason: 'bad-signature',
  },
  {
    name: 'the right signature with the hint of another',
    envelope: envelopeOf(tx, [decorated(payer, undefined, bob)]),
    account: account({ signers: [signer(bob, 1)] }),
    reason: 'bad-signature',
  },
  {
    name: 'a signature of another transaction',
    envelope: envelopeOf(tx, [payer.signDecorated(transactionHash(transferTransaction({ tx: { seqNum: 9n } })))]),
    account: account(),
    reason: 'bad-signature',
  },
  {
    name: 'a signature a byte short',
    envelope: envelopeOf(tx, [decorated(payer, (signature) => signature.subarray(0, 63))]),
    account: account(),
    reason: 'bad-signature',
  },
  {
    name: 'no bytes for a signature',
    envelope: envelopeOf(tx, [decorated(payer, () => new Uint8Array(0))]),
    account: account(),
    reason: 'bad-signature',
  },
  {
    name: 'the second form of the signature',
    envelope: envelopeOf(tx, [decorated(payer, malleated)]),
    account: account(),
    reason: 'bad-signature',
  },
  { name: 'the same signature twice', envelope: signed(payer, payer), account: account(), reason: 'extra-signature' },
  {
    name: 'a stranger beside the master key',
    envelope: signed(payer, stranger),
    account: account(),
    reason: 'bad-signature',
  },
  {
    name: '20 signatures: one valid, the others garbage',
    envelope: envelopeOf(tx, [decorated(payer), ...Array.from({ length: 19 }, () => garbage)]),
    account: account(),
    reason: 'bad-signature',
  },
  {
    name: '20 signatures: garbage, the last one valid',
    envelope: envelopeOf(tx, [...Array.from({ length: 19 }, () => garbage), decorated(payer)]),
    account: account(),
    reason: 'bad-signature',
  },
  {
    name: '20 signatures of 20 signers',
    ...twentySigners(),
  },
  { name: 'two of three', envelope: signed(bob, carol), account: twoOfThree },
  { name: 'two of three, the master key among them', envelope: signed(carol, payer), account: twoOfThree },
  { name: 'one of three', envelope: signed(bob), account: twoOfThree, reason: 'too-little-weight' },
  { name: 'one of three twice', envelope: signed(bob, bob), account: twoOfThree, reason: 'too-little-weight' },
  {
    name: 'two of three, one of them twice',
    envelope: signed(bob, bob, carol),
    account: twoOfThree,
    reason: 'extra-signature',
  },
  {
    name: 'two of three, one of them elsewhere',
    envelope: elsewhere(bob, carol),
    account: twoOfThree,
    reason: 'bad-signature',
  },
  {
    name: 'a weight one short of MEDIUM',
    envelope: signed(bob),
    account: account({ thresholds: [1, 0, 200, 255], signers: [signer(bob, 199)] }),
    reason: 'too-little-weight',
  },
  {
    name: 'a weight of exactly MEDIUM, below HIGH',
    envelope: signed(bob),
    account: account({ thresholds: [1, 0, 200, 255], signers: [signer(bob, 200)] }),
  },
  {
    name: 'MEDIUM below LOW, and the weight between them',
    envelope: signed(bob),
    account: account({ thresholds: [1, 200, 5, 255], signers: [signer(bob, 5)] }),
    reason: 'too-little-weight',
  },
  {
    name: 'MEDIUM below LOW, which is reached',
    envelope: signed(bob),
    account: account({ thresholds: [1, 200, 5, 255], signers: [signer(bob, 200)] }),
  },
  {
    name: 'two where one would do',
    envelope: signed(payer, bob),
    account: account({ signers: [signer(bob, 1)] }),
    reason: 'extra-signature',
  },
  {
    name: 'three where two would do',
    envelope: signed(bob, carol, payer),
    account: twoOfThree,
    reason: 'extra-signature',
  },
  {
    name: 'a light one before the one that suffices',
    envelope: signed(payer, bob),
    account: account({ thresholds: [1, 0, 5, 5], signers: [signer(bob, 5)] }),
  },
  {
    name: 'a master key without weight beside one that has it',
    envelope: signed(payer, bob),
    account: account({ thresholds: [0, 0, 0, 0], signers: [signer(bob, 1)] }),
    reason: 'bad-signature',
  },
  {
    name: 'another signer, the master key without weight',
    envelope: signed(bob),
    account: account({ thresholds: [0, 0, 0, 0], signers: [signer(bob, 1)] }),
  },
  {
    name: 'a signer of weight 0, all thresholds 0',
    envelope: signed(bob),
    account: account({ thresholds: [1, 0, 0, 0], signers: [signer(bob, 0)] }),
    reason: 'bad-signature',
  },
  {
    name: 'nobody, all thresholds 0',
    envelope: signed(),
    account: account({ thresholds: [0, 0, 0, 0], signers: [signer(bob, 1)] }),
    reason: 'too-little-weight',
  },
  {
    name: 'a signer where all thresholds are 0',
    envelope: signed(bob),
    account: account({ thresholds: [1, 0, 0, 0], signers: [signer(bob, 1)] }),
  },
  {
    name: 'the preimage of a hash',
    envelope: envelopeOf(tx, [new xdr.DecoratedSignature({ hint: hashX.subarray(28), signature: preimage })]),
    account: account({ signers: [{ key: xdr.SignerKey.signerKeyTypeHashX(hashX), weight: 9 }] }),
    reason: 'bad-signature',
  },
  { name: 'no account, a stranger', envelope: signed(stranger), account: { exists: false }, reason: 'no-account' },
  { name: 'no account, nobody', envelope: signed(), account: { exists: false }, reason: 'no-account' },
]

function twentySigners(): Pick<SignatureCase, 'envelope' | 'account'> {
  const others = Array.from({ length: 19 }, (_, index) => pair(`signer ${index}`))
  return {
    envelope: signed(...others, payer),
    account: account({ thresholds: [1, 20, 20, 20], signers: others.map((key) => signer(key, 1)) }),
  }
}

/** The sequence number that the account has used last, beside that of a transfer with number 8. */
export const PAYER_CASES: readonly { name: string; used: bigint | null; reason?: RefusalReason }[] = [
  { name: 'the next number', used: 7n },
  { name: 'a number that is used', used: 8n, reason: 'sequence' },
  { name: 'a number long used', used: 100n, reason: 'sequence' },
  { name: 'a number too far ahead', used: 6n, reason: 'sequence' },
  { name: 'no account', used: null, reason: 'no-account' },
]
